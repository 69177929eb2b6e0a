#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/cython_names: a library with functions that add themselves to tracebacks, as Cython's do.

    fuzz/make_cython_names_corpus.py

  module       three functions of the helper, one of them with an inlined other one
  cut_*        the first bytes of it
  turned_*     it with some bytes of its code or its strings inverted

Needs cc and strip, on x86-64.
"""
import pathlib
import subprocess
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent / 'corpus' / 'cython_names'
SOURCE = """
const char *setting = "cline_in_traceback";
static volatile int sink;
__attribute__((noinline)) static void add_traceback(const char *name, int c_line, int line, const char *file)
{
	sink += name[0] + c_line + line + file[0];
}
__attribute__((noinline)) int first(int n)
{
	if (n == 1)
		add_traceback("shop.cart.first", 100, 10, "shop/cart.pyx");
	return n + 1;
}
__attribute__((noinline)) int second(int n)
{
	if (n == 1)
		add_traceback("shop.cart.Cart.second", 200, 20, "shop/cart.pyx");
	if (n == 2)
		add_traceback("shop.cart.Cart.second", 210, 21, "shop/cart.pyx");
	if (n == 3)
		add_traceback("shop.cart.inlined", 300, 30, "shop/cart.pyx");
	return n + 2;
}
__attribute__((noinline)) int third(int n)
{
	if (n == 1)
		add_traceback("shop.cart.third", 400, 40, "shop/cart.pyx");
	if (n == 2)
		add_traceback("shop.cart.inlined", 300, 30, "shop/cart.pyx");
	return n + 3;
}
"""


def build():
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, 'cart.c'), pathlib.Path(folder, 'cart.so')
        source.write_text(SOURCE)
        subprocess.run(['cc', '-O1', '-fPIC', '-shared', '-nostdlib', '-fno-reorder-blocks', '-Wl,-z,noseparate-code',
                        '-Wl,--build-id=none', source, '-o', library], check=True)
        subprocess.run(['strip', library], check=True)
        return library.read_bytes()


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    module = build()
    made = {'module': module}
    for part in range(1, 8):
        made['cut_%d' % part] = module[:len(module) * part // 8]
    for part in range(16):
        at = 0x200 + part * 0x60
        made['turned_%02d' % part] = module[:at] + bytes(255 - byte for byte in module[at:at + 12]) + module[at + 12:]
    for name, data in made.items():
        (FOLDER / name).write_bytes(data)


if __name__ == '__main__':
    main()
