package objectlist_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

func TestRead(t *testing.T) {
	t.Parallel()
	errTake := errors.New("enough")
	tests := map[string]struct {
		body    string
		left    int64
		take    error
		want    []string
		version string
		err     error  // or
		text    string // of another one
	}{
		"a list": {
			body: `{"kind":"List","metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b":[2]}]}`, left: 1000,
			want: []string{`{"a":1}`, `{"b":[2]}`}, version: "7",
		},
		"metadata at the end": {
			body: `{"items":[{}],"metadata":{"resourceVersion":"7"}}`, left: 1000, want: []string{`{}`}, version: "7",
		},
		"no items":         {body: `{"items":null,"metadata":{"resourceVersion":"7"}}`, left: 1000, version: "7"},
		"many small items": {body: `{"items":[` + strings.Repeat(`"0123456789",`, 99) + `0]}`, left: 10_000, want: append(repeat(`"0123456789"`, 99), "0")},
		"a large item":     {body: `{"items":["small","` + strings.Repeat("x", 1000) + `"]}`, left: 10_000, want: []string{`"small"`}, err: objectlist.ErrLargeObject},
		"large metadata":   {body: `{"metadata":{"continue":"` + strings.Repeat("x", 1000) + `"}}`, left: 10_000, err: objectlist.ErrLargeObject},
		"a large field":    {body: `{"x":"` + strings.Repeat("x", 1000) + `"}`, left: 10_000, err: objectlist.ErrLargeObject},
		"space":            {body: `{` + strings.Repeat(" ", 1000), left: 10_000, err: objectlist.ErrLargeObject},
		"many bytes":       {body: `{"items":[` + strings.Repeat(`"0123456789",`, 99), left: 26, want: repeat(`"0123456789"`, 1), err: objectlist.ErrManyBytes},
		"not taken":        {body: `{"items":[1,2]}`, left: 1000, take: errTake, want: []string{"1"}, err: errTake},
		"it breaks off":    {body: `{"items":["1`, left: 1000, err: io.ErrUnexpectedEOF},
		"nothing":          {left: 1000, err: io.ErrUnexpectedEOF},
		"no list":          {body: `[]`, left: 1000, text: "the list has [ in the place of {"},
		"items are a map":  {body: `{"items":{}}`, left: 1000, text: "the items are { and no list"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const objectBytes = 600 // the least that a decoder reads at a time, and some more
			var got []string
			left := tc.left
			meta, err := objectlist.Read(iotest.OneByteReader(strings.NewReader(tc.body)), objectBytes, &left, func(item []byte) error {
				got = append(got, string(item))
				return tc.take
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			switch {
			case tc.text != "" && (err == nil || err.Error() != tc.text), tc.text == "" && !errors.Is(err, tc.err):
				t.Errorf("err = %v, want %v %s", err, tc.err, tc.text)
			}
			if meta.ResourceVersion != tc.version {
				t.Errorf("version = %q, want %q", meta.ResourceVersion, tc.version)
			}
			if read := tc.left - left; read > int64(len(tc.body)) || err == nil && read != int64(len(tc.body)) {
				t.Errorf("%d bytes are taken off for %d", read, len(tc.body))
			}
		})
	}
}

func repeat(text string, count int) []string {
	texts := make([]string, count)
	for i := range texts {
		texts[i] = text
	}
	return texts
}
