#include "io/child.h"
