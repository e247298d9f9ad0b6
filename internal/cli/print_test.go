package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// What is printed for programs does nothing to a terminal, and means what it did.
func TestPrintedJSONIsHarmless(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[2J \u009b1m \u202eb \U000e0041 ü 𝄞 </b>"
	var out strings.Builder
	if err := Print(&out, &Choice{value: JSON}, text); err != nil {
		t.Fatal(err)
	}
	if want := `"a\u001b[2J \u009b1m \u202eb \udb40\udc41 ü 𝄞 </b>"` + "\n"; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != text {
		t.Errorf("read back as %q: %v", back, err)
	}
}

// Problems quote what anybody wrote.
func TestPrintedLinesAreHarmless(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := PrintLines(&out, []error{errors.New("a\tb\x1b[2J\u202e\nError: no")}); err != nil {
		t.Fatal(err)
	}
	if want := "a\tb\ufffd[2J\ufffd\ufffdError: no\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
