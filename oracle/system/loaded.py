"""When this package was first imported: files of it that have changed since are not the code that runs."""

import time

LOADED = time.time()
