"""Images in: bounded as the model server bounds them, and refused with one sentence where they cannot be used."""
