#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Install a file under another name: an install script of meson. Arguments: the file, the folder below the prefix, the name."""
import os
import shutil
import sys

source, below, name = sys.argv[1:]
folder = os.path.join(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], below)
os.makedirs(folder, exist_ok=True)
shutil.copyfile(source, os.path.join(folder, name))
os.chmod(os.path.join(folder, name), 0o644)
