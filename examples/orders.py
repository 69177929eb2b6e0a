#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Count the orders of each day: the slow program of docs/tutorial.md.

Usage: orders.py [ORDERS]
"""
import collections
import datetime
import random
import sys


def make_lines(count):
    """Lines of a log, as 'ORDER DAY CENTS'; some orders are there twice."""
    generator = random.Random(1)
    first = datetime.date(2026, 1, 1)
    for number in range(count):
        day = first + datetime.timedelta(days=number * 300 // count)
        yield "A%06d %s %d" % (number - (number % 10 == 0), day, generator.randrange(10000))


def parse(line):
    order, day, cents = line.split()
    return order, datetime.datetime.strptime(day, "%Y-%m-%d").date(), int(cents)


def is_new(order, seen):
    if order in seen:
        return False
    seen.append(order)
    return True


def total_by_day(lines):
    seen = []
    totals = collections.Counter()
    for line in lines:
        order, day, cents = parse(line)
        if is_new(order, seen):
            totals[day] += cents
    return totals


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 16000
    totals = total_by_day(make_lines(count))
    print("%d days, %d cents" % (len(totals), sum(totals.values())))


if __name__ == "__main__":
    main()
