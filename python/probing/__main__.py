# SPDX-License-Identifier: MIT
"""python3 -m probing ...: the program probing, in place of this one."""
import os
import sys

from probing import Error, binary


def main():
    try:
        program = binary()
    except Error as error:
        sys.exit("probing: %s" % error)
    os.execv(program, [program] + sys.argv[1:])


if __name__ == "__main__":
    main()
