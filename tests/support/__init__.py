"""What the tests share: a virtual clock, scripted engines, scripted servers."""
