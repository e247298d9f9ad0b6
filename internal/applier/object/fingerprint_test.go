package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFingerprintsOfRecords has the texts in the records of earlier releases.
func TestFingerprintsOfRecords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want Fingerprint
		bad  bool
	}{
		"of a ConfigMap":  {text: "u-1/77", want: Fingerprint{UID: "u-1", ResourceVersion: "77"}},
		"of a Deployment": {text: "u-1/2/cbf29ce484222325", want: Fingerprint{UID: "u-1", Generation: 2, Metadata: 0xcbf29ce484222325}},
		"F18: of nothing": {text: "deleted", want: Fingerprint{Deleted: true}},
		"empty":           {bad: true},
		"one part":        {text: "gone", bad: true},
		"four parts":      {text: "u/1/2/3", bad: true},
		"no generation":   {text: "u/x/1", bad: true},
		"no digest":       {text: "u/1/x", bad: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got Fingerprint
			if err := got.UnmarshalText([]byte(tc.text)); (err != nil) != tc.bad {
				t.Fatalf("err = %v", err)
			}
			if tc.bad {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text, err := got.MarshalText(); err != nil || string(text) != tc.text {
				t.Errorf("it is written as %q (%v)", text, err)
			}
		})
	}
}
