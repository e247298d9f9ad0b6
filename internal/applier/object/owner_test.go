package object

import (
	"strings"
	"testing"
)

func TestNamesAreBoundedAndStayUnique(t *testing.T) {
	t.Parallel()
	short := strings.Repeat("a", MaxReleaseName)
	if got := ReleaseName(short); got != short {
		t.Errorf("releaseName(%q) = %q: names that fit are the reference implementation's", short, got)
	}
	one, two := ReleaseName(short+"b"), ReleaseName(short+"c")
	if len(one) != MaxReleaseName || len(two) != MaxReleaseName || one == two {
		t.Errorf("long names become %q and %q", one, two)
	}
}

// TestRecordsOfLongNamesAreNobodyElses: no extension can be called as the records of one
// whose name is too long for Helm.
