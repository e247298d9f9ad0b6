package catalogserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
)

const (
	earlier = "Mon, 01 Jan 2001 00:00:00 GMT"
	later   = "Fri, 01 Jan 2100 00:00:00 GMT"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	tag, gzipTag := `"`+sum(catalogText)+`"`, `"`+sum(catalogText)+`-gzip"`
	whole := exchange{status: 200, body: catalogText, want: map[string]string{"ETag": tag, "Last-Modified": storedAt}}
	notModified := exchange{status: 304, want: map[string]string{"ETag": tag, "Content-Type": absent, "Content-Length": absent, "Content-Encoding": absent}}
	failed := exchange{status: 412, want: map[string]string{"Content-Encoding": absent}}
	tests := map[string]struct {
		reason string
		header map[string]string
		want   exchange
	}{
		"If-None-Match, this":             {header: map[string]string{"If-None-Match": tag}, want: notModified},
		"If-None-Match, weak":             {header: map[string]string{"If-None-Match": "W/" + tag}, want: notModified},
		"If-None-Match, in a list":        {header: map[string]string{"If-None-Match": `"x", W/"y,z" ,` + tag}, want: notModified},
		"If-None-Match, any":              {header: map[string]string{"If-None-Match": "*"}, want: notModified},
		"If-None-Match, another":          {header: map[string]string{"If-None-Match": `"x"`}, want: whole},
		"If-None-Match, not a tag":        {header: map[string]string{"If-None-Match": sum(catalogText)}, want: whole},
		"If-None-Match, unfinished":       {header: map[string]string{"If-None-Match": `"` + sum(catalogText)}, want: whole},
		"If-None-Match outranks dates":    {header: map[string]string{"If-None-Match": `"x"`, "If-Modified-Since": later}, want: whole},
		"If-Modified-Since, then":         {header: map[string]string{"If-Modified-Since": storedAt}, want: notModified},
		"If-Modified-Since, later":        {header: map[string]string{"If-Modified-Since": later}, want: notModified},
		"If-Modified-Since, earlier":      {header: map[string]string{"If-Modified-Since": earlier}, want: whole},
		"If-Modified-Since, no date":      {header: map[string]string{"If-Modified-Since": "yesterday"}, want: whole},
		"If-Match, this":                  {header: map[string]string{"If-Match": tag}, want: whole},
		"If-Match, any":                   {header: map[string]string{"If-Match": "*"}, want: whole},
		"If-Match, another":               {header: map[string]string{"If-Match": `"x"`}, want: failed},
		"If-Match, weak":                  {header: map[string]string{"If-Match": "W/" + tag}, want: failed, reason: "it asks for the same bytes"},
		"If-Match and If-None-Match":      {header: map[string]string{"If-Match": tag, "If-None-Match": tag}, want: notModified},
		"If-Unmodified-Since, then":       {header: map[string]string{"If-Unmodified-Since": storedAt}, want: whole},
		"If-Unmodified-Since, earlier":    {header: map[string]string{"If-Unmodified-Since": earlier}, want: failed},
		"If-Unmodified-Since, no date":    {header: map[string]string{"If-Unmodified-Since": "yesterday"}, want: whole},
		"If-Match outranks dates":         {header: map[string]string{"If-Match": tag, "If-Unmodified-Since": earlier}, want: whole},
		"this tag, and gzip accepted":     {header: map[string]string{"If-None-Match": tag, "Accept-Encoding": "gzip"}, want: notModified, reason: "it has the content, in another coding"},
		"If-Match, and gzip accepted":     {header: map[string]string{"If-Match": tag, "Accept-Encoding": "gzip"}, want: whole, reason: "it insists on this coding"},
		"If-Match gzip, without":          {header: map[string]string{"If-Match": gzipTag}, want: failed},
		"gzip tag, nothing accepted":      {header: map[string]string{"If-None-Match": gzipTag}, want: exchange{status: 304, want: map[string]string{"ETag": gzipTag}}},
		"gzip tag, and gzip accepted":     {header: map[string]string{"If-None-Match": gzipTag, "Accept-Encoding": "gzip"}, want: exchange{status: 304, want: map[string]string{"ETag": gzipTag, "Content-Encoding": absent}}},
		"a broken list, nothing accepted": {header: map[string]string{"If-None-Match": `"a b", ` + gzipTag}, want: whole, reason: "who reads the list differently gets no coding it cannot read"},
	}
	for name, tt := range tests {
		for path, endpoint := range map[string]string{"all": allPath, "metas": metasPath} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				t.Run(name+"/"+path+"/"+method, func(t *testing.T) {
					t.Parallel()
					e := tt.want
					e.method, e.path, e.header, e.reason = method, endpoint, tt.header, tt.reason
					if method == http.MethodHead {
						e.body = ""
					}
					e.run(t, base)
				})
			}
		}
	}
}

// Lists of tags may come in several lines.
func TestConditionsInSeveralLines(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+allPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["If-None-Match"] = []string{`"x"`, `"` + sum(catalogText) + `"`}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotModified {
		t.Errorf("got status %d", resp.StatusCode)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	tag := `"` + sum(catalogText) + `"`
	part := func(body, contentRange string) exchange {
		return exchange{status: 206, body: body, want: map[string]string{
			"Content-Range": contentRange, "Content-Encoding": absent, "ETag": tag, "Accept-Ranges": "bytes",
		}}
	}
	whole := exchange{status: 200, body: catalogText, want: map[string]string{
		"Content-Range": absent, "Content-Encoding": absent, "ETag": tag, "Accept-Ranges": "bytes",
	}}
	size := len(catalogText)
	behind := func(n int) string { return fmt.Sprintf("bytes %d-%d/%d", size-n, size-1, size) }
	firstFour := part(catalogText[:4], fmt.Sprintf("bytes 0-3/%d", size))
	tests := map[string]struct {
		header map[string]string
		want   exchange
	}{
		"first bytes":         {header: map[string]string{"Range": "bytes=0-3"}, want: firstFour},
		"last bytes":          {header: map[string]string{"Range": "bytes=-4"}, want: part(catalogText[size-4:], behind(4))},
		"open end":            {header: map[string]string{"Range": fmt.Sprintf("bytes=%d-", size-6)}, want: part(catalogText[size-6:], behind(6))},
		"beyond the end":      {header: map[string]string{"Range": fmt.Sprintf("bytes=%d-9999", size-6)}, want: part(catalogText[size-6:], behind(6))},
		"not satisfiable":     {header: map[string]string{"Range": "bytes=9999-"}, want: exchange{status: 416, body: "invalid range: failed to overlap\n", want: map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", size), "ETag": absent}}},
		"another unit":        {header: map[string]string{"Range": "lines=1-2"}, want: exchange{status: 416, body: "invalid range\n"}},
		"If-Range, this":      {header: map[string]string{"Range": "bytes=0-3", "If-Range": tag}, want: firstFour},
		"If-Range, another":   {header: map[string]string{"Range": "bytes=0-3", "If-Range": `"x"`}, want: whole},
		"If-Range, weak":      {header: map[string]string{"Range": "bytes=0-3", "If-Range": "W/" + tag}, want: whole},
		"If-Range, gzip":      {header: map[string]string{"Range": "bytes=0-3", "If-Range": `"` + sum(catalogText) + `-gzip"`}, want: whole},
		"If-Range, then":      {header: map[string]string{"Range": "bytes=0-3", "If-Range": storedAt}, want: firstFour},
		"If-Range, earlier":   {header: map[string]string{"Range": "bytes=0-3", "If-Range": earlier}, want: whole},
		"If-Range, no date":   {header: map[string]string{"Range": "bytes=0-3", "If-Range": "yesterday"}, want: whole},
		"If-Match, another":   {header: map[string]string{"Range": "bytes=0-3", "If-Match": `"x"`}, want: exchange{status: 412}},
		"If-None-Match, this": {header: map[string]string{"Range": "bytes=0-3", "If-None-Match": tag}, want: exchange{status: 304}},
	}
	for name, tt := range tests {
		for _, accepted := range []string{"identity", "gzip, zstd"} {
			t.Run(name+"/"+accepted, func(t *testing.T) {
				t.Parallel()
				e := tt.want
				e.path = allPath
				e.header = maps.Clone(tt.header)
				e.header["Accept-Encoding"] = accepted
				e.run(t, base)
			})
		}
	}
	t.Run("several/gzip, zstd", func(t *testing.T) {
		t.Parallel()
		got := do(t, http.MethodGet, base+allPath, map[string]string{"Range": "bytes=0-3,5-9", "Accept-Encoding": "gzip, zstd"})
		if got.StatusCode != 206 || got.Header.Get("Content-Encoding") != "" || got.Header.Get("ETag") != tag {
			t.Errorf("got %d with %v", got.StatusCode, got.Header)
		}
	})
	t.Run("metas has none", func(t *testing.T) {
		t.Parallel()
		exchange{
			path: metasPath + "?name=q", header: map[string]string{"Range": "bytes=0-3", "If-Range": tag}, status: 200, body: linePackageQ,
			want: map[string]string{"Content-Range": absent, "Accept-Ranges": absent},
		}.run(t, base)
	})
}
