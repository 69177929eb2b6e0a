#include "tests/unit/store_fixture.h"
int main(void) { return 0; }
