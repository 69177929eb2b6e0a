# SPDX-License-Identifier: MIT
"""Code for `probing eval --file`."""
print(len(dir()))
