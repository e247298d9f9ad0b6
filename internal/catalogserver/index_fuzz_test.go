package catalogserver

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// FuzzIndex searches damaged indexes: nothing worse than an error comes of it,
// and no line is outside the content.
func FuzzIndex(f *testing.F) {
	const contentBytes = 1000
	var b indexBuilder
	for _, o := range []fbc.Object{
		{Schema: "olm.package", Name: "p"},
		{Schema: "olm.bundle", Package: "p", Name: "p.v1"},
		{Schema: "olm.bundle", Package: "q", Name: "q.v1"},
		{},
	} {
		b.add(o, []byte(strings.Repeat("x", contentBytes/4)))
	}
	var whole bytes.Buffer
	if err := b.write(&whole); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes(), "olm.bundle", "p", "p.v1")
	f.Add(whole.Bytes(), "olm.bundle", "", "")
	f.Add(whole.Bytes()[:indexHeaderBytes], "", "q", "")
	f.Fuzz(func(t *testing.T, data []byte, schema, pkg, name string) {
		x, err := openIndex(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		found, err := x.selectLines(Query{Schema: schema, Package: pkg, Name: name}, contentBytes)
		if err != nil {
			return
		}
		reader := &lineReader{lines: found, content: bytes.NewReader(make([]byte, contentBytes))}
		if read, err := io.Copy(io.Discard, reader); err != nil || read != found.bytes {
			t.Errorf("got %d bytes of %d, %v", read, found.bytes, err)
		}
	})
}

// FuzzIndexOf builds an index of any objects, and finds each of them again.
func FuzzIndexOf(f *testing.F) {
	f.Add("a", "b", "c", 3)
	f.Add("", "", "x", 200)
	f.Add("same", "same", "same", 1)
	f.Fuzz(func(t *testing.T, schema, pkg, name string, count int) {
		var b indexBuilder
		var content []byte
		objects := []fbc.Object{{Schema: name, Name: schema}, {Schema: schema, Package: pkg, Name: name}}
		for i := range min(max(count, 0), 300) {
			o := objects[i%2]
			b.add(o, lineOf(o))
			content = append(content, lineOf(o)...)
		}
		var file bytes.Buffer
		if err := b.write(&file); err != nil {
			t.Fatal(err)
		}
		x, err := openIndex(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []Query{{Schema: schema}, {Package: pkg}, {Name: name}, {Schema: schema, Package: pkg, Name: name}} {
			if q == (Query{}) {
				continue
			}
			found, err := x.selectLines(q, int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			var want int64
			for i := range b.count() {
				o := objects[i%2]
				if (q.Schema == "" || q.Schema == o.Schema) && (q.Package == "" || q.Package == o.Package) && (q.Name == "" || q.Name == o.Name) {
					want += int64(len(lineOf(o)))
				}
			}
			if found.bytes != want {
				t.Errorf("%+v: got %d bytes, want %d", q, found.bytes, want)
			}
		}
	})
}

func lineOf(o fbc.Object) []byte { return fmt.Appendf(nil, "%q %q %q\n", o.Schema, o.Package, o.Name) }
