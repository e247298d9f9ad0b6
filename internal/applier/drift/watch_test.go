package drift

import (
	"fmt"
	"strings"
	"testing"
)

func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	users := map[string]struct{}{}
	for i := range maxSelected {
		users[fmt.Sprintf("e%02d", i)] = struct{}{}
	}
	if selector, covered := selectorOf(users); len(covered) != maxSelected || !strings.Contains(selector, "e49") {
		t.Errorf("%d are selected: %s", len(covered), selector)
	}
	users["another"] = struct{}{}
	if selector, covered := selectorOf(users); covered != nil || strings.Contains(selector, "e49") {
		t.Errorf("%d are selected: %s", len(covered), selector)
	}
}
