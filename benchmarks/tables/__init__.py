"""Tables as people have them: text with nothing declared, through one private pipeline."""
