"""What `endoscope try` is made of.

script      runs a file as `python file` would
arrival     tells when torch has been imported
search      finds the model that is trained, and its optimizers
attempt     records what was found, and says what was not
words       the sentences
page        the page, in a process of its own
"""
