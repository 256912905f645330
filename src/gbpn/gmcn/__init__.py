"""The graphical model construction network: from an image to the Markov random field behind its depth."""
