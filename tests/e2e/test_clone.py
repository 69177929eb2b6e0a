# SPDX-License-Identifier: MIT
"""Every command of the documents whose reader has a fresh clone and no more, as test_documents.py runs them. They share nothing."""
import sys
import unittest

import test_documents

globals().update(test_documents.cases_of(test_documents.IN_CLONE, __name__))

if __name__ == "__main__":
    sys.exit(unittest.main())
