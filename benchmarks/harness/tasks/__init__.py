"""What is done with a case.

A task is a function (cases, folder, options) that yields (case, what was found); its
cases are of one problem and one number of threads.
"""

from . import approximate, grow, learn

TASKS = {
    "approximate": approximate.run,
    "grow": grow.run,
    "learn": learn.run,
}
