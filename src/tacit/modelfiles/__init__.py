"""A fitted model as a file that executes nothing: JSON with arrays in base64.

files      `save` and `load`: the document, its version, the text on disk
classes    which classes can be saved, what each has released, and how its arrays must fit together
values     parameters and arrays as JSON values, and back; which classes parameters that are objects may have
claims     whether a stated guarantee follows from its event
texts      which texts may be shown
table      `TableModel`: a model with the columns of the table that it reads

The format may still change until the first version that promises to keep it.
"""

from tacit.modelfiles.files import load, save
from tacit.modelfiles.table import Column, TableModel

__all__ = ["Column", "TableModel", "load", "save"]
