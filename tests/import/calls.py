"""What small.pstats is of: python3.11 -m cProfile -o small.pstats calls.py"""
def leaf(n): return sum(i*i for i in range(n))
def a(): return leaf(20000)
def b(): return leaf(60000)
def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)
def main():
    for _ in range(10): a(); b()
    fib(18)
    sorted(range(1000), key=lambda x: -x)
main()
