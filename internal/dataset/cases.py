# The test of a row with inputs and outputs. candidate is a function, or a program that reads its standard input. The
# outputs of a function may each be in a list of one, as in APPS. Of a program, numbers count by their values, and
# blanks around words not at all.
import decimal
import json

def lines_of(text):
    text = "\n".join(text) if isinstance(text, list) else str(text)
    return [line.split() for line in text.strip().split("\n")]

def same_word(got, wanted):
    try:
        return got == wanted or decimal.Decimal(got) == decimal.Decimal(wanted)
    except decimal.InvalidOperation:
        return False

def same_lines(got, wanted):
    return len(got) == len(wanted) and all(
        len(a) == len(b) and all(map(same_word, a, b)) for a, b in zip(got, wanted))

for given, wanted in zip(*json.loads(CASES)):
    if "__main__" in globals():
        given = "\n".join(given) if isinstance(given, list) else given
        assert same_lines(lines_of(candidate(given)), lines_of(wanted))
    else:
        got = candidate(*given)
        got = list(got) if isinstance(got, tuple) else got
        assert got == wanted or [got] == wanted
