"""`bench v2v`: how soon the answer to speech is heard, over the app's own WebSocket and in real time."""
