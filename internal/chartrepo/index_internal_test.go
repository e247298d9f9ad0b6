package chartrepo

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
)

func versioned(versions ...string) index {
	entries := make([]entry, 0, len(versions))
	for n, version := range versions {
		entries = append(entries, entry{Version: version, Digest: string(rune('a' + n))})
	}
	return index{Entries: map[string][]entry{"web": entries, "db": nil}}
}

// TestNewest: of the versions that a range allows, the newest is chosen, as Helm does it.
func TestNewest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		versions []string
		text     string // the range
		want     string // the version; "" for none
		err      string
	}{
		"the newest":                      {[]string{"1.2.0", "1.10.0", "1.9.0"}, "", "1.10.0", ""},
		"no prerelease":                   {[]string{"1.0.0", "1.1.0-rc.1"}, "", "1.0.0", ""},
		"no prerelease in a range":        {[]string{"1.0.0", "1.1.0-rc.1"}, "^1", "1.0.0", ""},
		"a prerelease that is asked for":  {[]string{"1.0.0", "1.1.0-rc.1"}, ">0-0", "1.1.0-rc.1", ""},
		"a prerelease by its name":        {[]string{"1.0.0", "1.1.0-rc.1"}, "1.1.0-rc.1", "1.1.0-rc.1", ""},
		"prereleases only":                {[]string{"1.1.0-rc.1", "1.1.0-rc.2"}, "", "", `chart "web" has prereleases only, the newest is "1.1.0-rc.2"`},
		"a version":                       {[]string{"1.0.0", "1.1.0"}, "1.0.0", "1.0.0", ""},
		"a version with a letter":         {[]string{"v1.0.0", "v1.1.0"}, "1.0.0", "v1.0.0", ""},
		"the text of a version first":     {[]string{"v1.0.0", "1.0.0"}, "1.0.0", "1.0.0", ""},
		"part of a version":               {[]string{"1.0.0", "1.1.0", "2.0.0"}, "1", "1.1.0", ""},
		"a range":                         {[]string{"1.0.0", "1.1.0", "2.0.0"}, ">=1.0 <2", "1.1.0", ""},
		"none in the range":               {[]string{"1.0.0", "1.1.0"}, "^2", "", `chart "web" has no version in the range "^2": the newest version is "1.1.0"`},
		"what is no version":              {[]string{"latest", "", "1.0.0"}, "", "1.0.0", ""},
		"no version at all":               {[]string{"latest", ""}, "", "", `chart "web" has no semantic version`},
		"nothing":                         {nil, "", "", `chart "web" has no semantic version`},
		"a version that is no version":    {[]string{"2024", "2024.a"}, "2024", "2024", ""},
		"a version with escape sequences": {[]string{"1.0.0\x1b[31m"}, "", "", `chart "web" has no semantic version`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions, err := ParseRange(test.text)
			if err != nil {
				t.Fatal(err)
			}
			found, err := versioned(test.versions...).newest("web", versions)
			if found.Version != test.want || !has(err, test.err) {
				t.Errorf("got %q, %v; want %q, %q", found.Version, err, test.want, test.err)
			}
		})
	}
	if found, err := versioned("1.0.0+a", "1.0.0+b").newest("web", mustParseRange(t, "")); err != nil || found.Digest != "a" {
		t.Errorf("of equal versions, %+v is chosen: %v", found, err)
	}
}

// has reports whether an error has a text; "" stands for no error.
func has(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

func mustParseRange(t *testing.T, text string) Range {
	t.Helper()
	versions, err := ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"newest", ">", "1.0.0 - ", "\x1b[31m"} {
		if _, err := ParseRange(text); !has(err, "is no range of versions") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// TestUnknownChart: the error names the charts that there are, within a bound and on one line.
func TestUnknownChart(t *testing.T) {
	t.Parallel()
	hostile := index{Entries: map[string][]entry{"web\x1b[2J\n": nil, strings.Repeat("x", 1<<20): nil, "zz": nil}}
	_, err := hostile.newest("db", mustParseRange(t, ""))
	if !has(err, `chart "db" is not in the index, which has "web\x1b[2J\n", "xxx`) || len(err.Error()) > 400 {
		t.Errorf("error %v", err)
	}
	if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q would move the cursor of a terminal", err)
	}
}

// TestParseIndex: an index is read with what Helm writes besides, and refused if it is none.
func TestParseIndex(t *testing.T) {
	t.Parallel()
	const helm = `apiVersion: v1
entries:
  web:
  - annotations: {category: server}
    apiVersion: v2
    created: "2026-01-02T03:04:05Z"
    dependencies: [{name: db, repository: https://db.example, version: 1.x}]
    digest: 5f4dcc3b
    name: web
    urls: [https://charts.example/web-1.10.tgz]
    version: 1.10
  empty:
  - null
generated: "2026-01-02T03:04:05Z"
`
	parsed, err := parseIndex([]byte(helm))
	if err != nil {
		t.Fatal(err)
	}
	if got := parsed.Entries["web"]; len(got) != 1 || got[0].Version != "1.10" || got[0].Digest != "5f4dcc3b" || got[0].URLs[0] != "https://charts.example/web-1.10.tgz" {
		t.Errorf("entries %+v", got)
	}
	if parsed, err = parseIndex([]byte(`{"entries": {"web": [{"version": "1.0.0", "urls": ["web-1.0.0.tgz"]}]}}`)); err != nil || parsed.Entries["web"][0].Version != "1.0.0" {
		t.Errorf("JSON: %+v, %v", parsed, err)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nentries: {web: [{urls: [*f,*f,*f]}]}\n"
	for name, test := range map[string]struct{ content, want string }{
		"nothing":          {"", "it has no entries"},
		"a page":           {"<!doctype html><html><body>Sign in</body></html>", "cannot unmarshal"},
		"a page with more": {"<html>\n<style>a: {b</style>\n", "line"},
		"no entries":       {"apiVersion: v1\nentries: {}\n", "it has no entries"},
		"other entries":    {"entries: [web]\n", "cannot unmarshal"},
		"other versions":   {"entries: {web: {version: 1.0.0}}\n", "cannot unmarshal"},
		"aliases":          {bomb, "cannot unmarshal"},
		"escape sequences": {"entries: \"\x1b[2J\"\n", "yaml: control characters are not allowed"},
		"too many values":  {"entries: [" + strings.Repeat(",", maxIndexValues) + "]", "it has more than 8388608 values"},
		"deep":             {"entries: " + strings.Repeat("[", 1<<20), "yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseIndex([]byte(test.content))
			if !has(err, test.want) || len(err.Error()) > maxIndexError {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestAddresses: an address in an index is https. Only the host of the repository gets the credentials
// and the token of the repository.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		repository, stated string
		want               string // "" for none
		err                string
	}{
		"relative":                     {"https://charts.example/stable", "web-1.0.0.tgz", "https://charts.example/stable/web-1.0.0.tgz", ""},
		"with a slash":                 {"https://charts.example/stable/", "charts/web-1.0.0.tgz", "https://charts.example/stable/charts/web-1.0.0.tgz", ""},
		"at the root":                  {"https://charts.example", "web-1.0.0.tgz", "https://charts.example/web-1.0.0.tgz", ""},
		"from the root":                {"https://charts.example/stable", "/web-1.0.0.tgz", "https://charts.example/web-1.0.0.tgz", ""},
		"above":                        {"https://charts.example/a/b", "../../../../web-1.0.0.tgz", "https://charts.example/web-1.0.0.tgz", ""},
		"elsewhere":                    {"https://charts.example", "https://cdn.example/web-1.0.0.tgz", "https://cdn.example/web-1.0.0.tgz", ""},
		"with escapes":                 {"https://charts.example/a%2Fb", "web%2F1.0.0.tgz", "https://charts.example/a%2Fb/web%2F1.0.0.tgz", ""},
		"credentials":                  {"https://me:secret@charts.example/stable", "web-1.0.0.tgz", "https://me:secret@charts.example/stable/web-1.0.0.tgz", ""},
		"credentials, by host":         {"https://me:secret@charts.example", "https://CHARTS.example/web-1.0.0.tgz", "https://me:secret@CHARTS.example/web-1.0.0.tgz", ""},
		"credentials, elsewhere":       {"https://me:secret@charts.example", "https://cdn.example/web-1.0.0.tgz", "https://cdn.example/web-1.0.0.tgz", ""},
		"credentials, at another port": {"https://me:secret@charts.example", "https://charts.example:8443/web-1.0.0.tgz", "https://charts.example:8443/web-1.0.0.tgz", ""},
		"without a scheme":             {"https://me:secret@charts.example?token=x", "//cdn.example/web-1.0.0.tgz", "https://cdn.example/web-1.0.0.tgz", ""},
		"a token":                      {"https://charts.example/stable?token=x", "web-1.0.0.tgz", "https://charts.example/stable/web-1.0.0.tgz?token=x", ""},
		"another token":                {"https://charts.example?token=x", "web-1.0.0.tgz?token=y", "https://charts.example/web-1.0.0.tgz?token=y", ""},
		"a token, elsewhere":           {"https://charts.example?token=x", "https://cdn.example/web-1.0.0.tgz", "https://cdn.example/web-1.0.0.tgz", ""},
		"without TLS":                  {"https://charts.example", "http://charts.example/web-1.0.0.tgz", "", `"http://charts.example/web-1.0.0.tgz" is no https address`},
		"a file":                       {"https://charts.example", "file:///etc/passwd", "", `"file:///etc/passwd" is no https address`},
		"a registry":                   {"https://charts.example", "oci://charts.example/web:1.0.0", "", "is no https address"},
		"no host":                      {"https://charts.example", "https:web-1.0.0.tgz", "", "is no https address"},
		"escape sequences":             {"https://charts.example", "web\x1b[2J.tgz", "", `"web\x1b[2J.tgz" is no address`},
		"no form":                      {"https://charts.example", "https://[::1", "", "is no address"},
		"none":                         {"https://charts.example", "", "", "states no address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository, err := ParseAddress(test.repository)
			if err != nil {
				t.Fatal(err)
			}
			offered := entry{URLs: []string{test.stated, "https://second.example/web.tgz"}}
			if test.stated == "" {
				offered.URLs = nil
			}
			address, err := offered.address(repository)
			got := ""
			if err == nil {
				got = address.String()
			}
			if got != test.want || !has(err, test.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://charts.example/web-1.0.0.tgz": "",
		"http://charts.example/web-1.0.0.tgz":  "is no https address",
		"oci://charts.example/web":             "is no https address",
		"https:///web-1.0.0.tgz":               "is no https address",
		"charts.example":                       "is no https address",
		"https://charts.example/%zz":           "malformed",
		"https://me:secret@\x00":               "malformed",
		"https://me:%secret@charts.example":    "malformed",
		"https:me:secret@charts.example":       `"https:" is no https address`,
		"http://secret@charts.example?token=x": `"http://charts.example" is no https address`,
	} {
		if _, err := ParseAddress(text); !has(err, want) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestShown: a message contains no user name, password, query or fragment of an address.
func TestShown(t *testing.T) {
	t.Parallel()
	const want = "https://charts.example/a%2Fb/web-1.0.0.tgz"
	for _, text := range []string{
		"https://charts.example/a%2Fb/web-1.0.0.tgz",
		"https://secret@charts.example/a%2Fb/web-1.0.0.tgz",
		"https://me:secret@charts.example/a%2Fb/web-1.0.0.tgz",
		"https://charts.example/a%2Fb/web-1.0.0.tgz?token=secret",
		"https://charts.example/a%2Fb/web-1.0.0.tgz?",
		"https://charts.example/a%2Fb/web-1.0.0.tgz#secret",
	} {
		address, err := ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Shown(address); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://charts.example/a/web-1.0.0.tgz":    "web-1.0.0.tgz",
		"https://charts.example/web-1.0.0.tgz?x=/y": "web-1.0.0.tgz",
		"https://charts.example/a%2Fweb-1.0.0.tgz":  "web-1.0.0.tgz",
		"https://charts.example/":                   "",
		"https://charts.example":                    "",
	} {
		address, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := FileName(address); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}

// TestShownAddresses: what an index states is no longer than a message, and shows no password.
func TestShownAddresses(t *testing.T) {
	t.Parallel()
	address, err := url.Parse("https://me:secret@charts.example/" + strings.Repeat("x", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if got := Shown(address); len(got) > maxShownAddress || strings.Contains(got, "secret") {
		t.Errorf("%d bytes: %.80s", len(got), got)
	}
}
