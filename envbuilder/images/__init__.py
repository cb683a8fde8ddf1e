"""Images: what one begins with, the program that builds, packs and tests it, what it holds."""
