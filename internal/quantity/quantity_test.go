package quantity_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterextensions/operator-controller/internal/quantity"
)

func TestIsHuge(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", quantity.MaxDigits)
	for text, want := range map[string]bool{
		"": false, "1": false, "500m": false, "0.1": false, "-1": false, "10Gi": false, "1e3": false, "1E": false, "12E-6": false,
		"9223372036854775807": false, "1e99": false, digits: false, digits + "Ki": false,
		"1e100": true, "1E+100": true, "-1.5e-100": true, "123456789012345678901e299999": true, digits + "9": true, "." + digits: true, digits + "9Ki": true,
		"words": false, "e999": false,
	} {
		if got := quantity.IsHuge(text); got != want {
			t.Errorf("%s is huge: %t, want %t", text, got, want)
		}
	}
}

// FuzzIsHuge: what is not huge can be read, compared and written, and is not long then. That
// it is right is another thing: of a 1 with 32 zeros the library makes 100.
func FuzzIsHuge(f *testing.F) {
	for _, text := range []string{"500m", "1e99", "1.5e-99", strings.Repeat("9", quantity.MaxDigits) + "Ei", "." + strings.Repeat("9", quantity.MaxDigits-1), "1e1_000", "1" + strings.Repeat("0", 32)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if quantity.IsHuge(text) {
			return
		}
		read, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		const most = quantity.MaxDigits + 99 + len("-.")
		if written := read.String(); len(written) > most {
			t.Errorf("%q becomes %q, longer than %d", text, written, most)
		}
		if same := read.DeepCopy(); same.Cmp(read) != 0 {
			t.Errorf("%q is not what it is", text)
		}
	})
}
