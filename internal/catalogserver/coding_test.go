package catalogserver_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

func TestCompression(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	tests := map[string]struct {
		accept string
		want   string
	}{
		"nothing said":             {"", ""},
		"gzip":                     {"gzip", "gzip"},
		"zstd":                     {"zstd", "zstd"},
		"both":                     {"gzip, zstd", "zstd"},
		"gzip preferred":           {"gzip, zstd;q=0.5", "gzip"},
		"others too":               {"br;q=1.0, deflate, gzip;q=0.8", "gzip"},
		"only others":              {"br, deflate", ""},
		"any":                      {"*", "zstd"},
		"any but one":              {"zstd;q=0, *", "gzip"},
		"any but those named":      {"*;q=0, gzip", "gzip"},
		"identity preferred":       {"identity, gzip;q=0.5", ""},
		"identity refused":         {"identity;q=0, gzip;q=0.1", "gzip"},
		"everything refused":       {"identity;q=0, *;q=0", ""},
		"gzip refused":             {"gzip;q=0", ""},
		"gzip refused at length":   {"gzip; q=0.000", ""},
		"capitals and space":       {" GZIP ; Q=1 ", "gzip"},
		"a weight that is none":    {"gzip;q=x", ""},
		"a weight too large":       {"gzip;q=2", ""},
		"a weight of NaN":          {"gzip;q=NaN", ""},
		"another parameter":        {"gzip;level=9", ""},
		"empty elements":           {",,gzip,", "gzip"},
		"something else of a kind": {"gzipped, xzstd", ""},
	}
	for name, tt := range tests {
		for path, ranges := range map[string]string{allPath: "bytes", metasPath: absent} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				want := map[string]string{"Content-Encoding": tt.want, "Accept-Ranges": ranges, "ETag": `"` + sum(catalogText) + `"`}
				if tt.want != "" {
					want["Accept-Ranges"] = absent
					want["ETag"] = `"` + sum(catalogText) + "-" + tt.want + `"`
				}
				exchange{path: path, header: map[string]string{"Accept-Encoding": tt.accept}, status: 200, body: catalogText, want: want}.run(t, base)
			})
		}
	}
}

func TestCompressionOfRefusals(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	accept := map[string]string{"Accept-Encoding": "gzip"}
	for name, e := range map[string]exchange{
		"HEAD":       {method: http.MethodHead, path: allPath, status: 200, want: map[string]string{"Content-Length": strconv.Itoa(len(catalogText)), "Accept-Ranges": "bytes"}},
		"not found":  {path: "/catalogs/d/api/v1/all", status: 404, body: "404 Not Found\n"},
		"no match":   {path: metasPath + "?name=none", status: 200},
		"small part": {path: metasPath + "?name=q", status: 200, body: linePackageQ},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.header = accept
			if e.want == nil {
				e.want = map[string]string{}
			}
			e.want["Content-Encoding"] = absent
			e.run(t, base)
		})
	}
}

// Replies are compressed from 1024 bytes up.
func TestCompressionThreshold(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	base := serveStore(t, s)
	texts := map[string]string{}
	for name, size := range map[string]int{"small": 1023, "large": 1024} {
		frame := `{"schema":""}` + "\n"
		texts[name] = `{"schema":"` + strings.Repeat("x", size-len(frame)) + `"}` + "\n"
		put(t, s, name, "1", files(map[string]string{"a": texts[name]}))
	}
	for name, want := range map[string]string{"small": "", "large": "gzip"} {
		for _, endpoint := range []string{"all", "metas"} {
			exchange{
				reason: name, path: "/catalogs/" + name + "/api/v1/" + endpoint, header: map[string]string{"Accept-Encoding": "gzip"},
				status: 200, body: texts[name], want: map[string]string{"Content-Encoding": want},
			}.run(t, base)
		}
	}
}

// A bounded number of replies is compressed at a time. Others are sent as they are,
// except for what is stored compressed.
func TestCompressionIsBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	text := incompressible("olm.big")
	put(t, s, "c", "1", files(map[string]string{"a": text}))
	base := serveStore(t, s)
	const limit = 16
	begun := make([]*http.Response, 0, limit)
	for range limit {
		begun = append(begun, begin(t, base+metasPath+"?schema=olm.big", "zstd"))
	}
	for _, resp := range begun {
		if got := resp.Header.Get("Content-Encoding"); got != "zstd" {
			t.Errorf("got coding %q", got)
		}
	}
	zstd := map[string]string{"Accept-Encoding": "zstd"}
	exchange{
		path: metasPath + "?schema=olm.big", header: zstd, status: 200, body: text,
		want: map[string]string{"Content-Encoding": absent, "ETag": begun[0].Header.Get("ETag")[:65] + `"`},
	}.run(t, base)
	exchange{path: allPath, header: zstd, status: 200, body: text, want: map[string]string{"Content-Encoding": "zstd"}}.run(t, base)
	for _, resp := range begun {
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, func() bool {
		resp := begin(t, base+metasPath+"?schema=olm.big", "zstd")
		return resp.Header.Get("Content-Encoding") == "zstd" && resp.Body.Close() == nil
	})
}
