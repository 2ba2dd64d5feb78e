"""Pictures of the page for the documents: page_pictures.py FOLDER. ./dev screenshots runs it."""
import os
import sys

from page_world import PageWorld

with PageWorld() as world:
    world.fill()
    world.browse("pictures", {"KOINE_PICTURES": os.path.abspath(sys.argv[1])})
