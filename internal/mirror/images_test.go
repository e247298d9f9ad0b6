package mirror_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/mirror"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// pkg is one with three channels, of which the highest version is the head of none.
func pkg(t *testing.T) resolve.Package {
	t.Helper()
	var content strings.Builder
	content.WriteString(`{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"},{"name":"p.v1.1.0","replaces":"p.v1.0.0"}]}
{"schema":"olm.channel","package":"p","name":"fast","entries":[{"name":"p.v2.0.0"},{"name":"p.v1.2.0","replaces":"p.v2.0.0"}]}
{"schema":"olm.channel","package":"p","name":"none","entries":[{"name":"p.v9.0.0"}]}
`)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "2.0.0"} {
		content.WriteString(strings.ReplaceAll(`{"schema":"olm.bundle","package":"p","name":"p.vVERSION","image":"registry.test/p:vVERSION",`+
			`"properties":[{"type":"olm.package","value":{"packageName":"p","version":"VERSION"}}]}`+"\n", "VERSION", version))
	}
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.LoadContent("c", strings.NewReader(content.String())); err != nil {
		t.Fatal(err)
	}
	found, err := client.Package("c", "p")
	if err != nil || found == nil {
		t.Fatal(err)
	}
	return *found
}

func TestBundles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason   string
		channels []string
		versions string
		want     string
		err      string
	}{
		"by default": {
			reason: "what is installed today: the head of each channel, and the highest version, which is the head of none",
			want:   "p.v2.0.0 p.v1.2.0 p.v1.1.0",
		},
		"of a channel": {reason: "its head, which is also its highest", channels: []string{"stable"}, want: "p.v1.1.0"},
		"of two": {
			reason: "of each the head, and the highest of both", channels: []string{"stable", "fast"},
			want: "p.v2.0.0 p.v1.2.0 p.v1.1.0",
		},
		"of a range":                {reason: "all in it, heads or not", versions: "<1.2.0", want: "p.v1.1.0 p.v1.0.0"},
		"of a range and a channel":  {reason: "both have to hold", versions: ">=1.0.0", channels: []string{"stable"}, want: "p.v1.1.0 p.v1.0.0"},
		"of a range with nothing":   {versions: ">=3.0.0", err: `package "p" has no bundle with an image in these channels and versions`},
		"of a channel with nothing": {channels: []string{"none"}, err: `package "p" has no bundle with an image in these channels and versions`},
		"of a channel that is not":  {channels: []string{"slow"}, err: `package "p" has no channel "slow": it has fast, none, stable`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wish := mirror.Wish{Channels: tt.channels}
			if tt.versions != "" {
				versions, err := resolve.ParseRange(tt.versions)
				if err != nil {
					t.Fatal(err)
				}
				wish.Versions = &versions
			}
			bundles, err := wish.Bundles(pkg(t))
			var names []string
			for _, one := range bundles {
				names = append(names, one.Bundle)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error is %v, want %q", err, tt.err)
			}
		})
	}
}

func TestRelated(t *testing.T) {
	t.Parallel()
	related := mirror.Related{}
	for _, object := range []fbc.Object{
		{Schema: fbc.SchemaPackage, Name: "p", JSON: []byte(`{}`)},
		{Schema: fbc.SchemaBundle, Package: "p", Name: "p.v1", JSON: []byte(`{"relatedImages":[{"name":"a","image":"x.test/a"},{"name":"b","image":""}]}`)},
		{Schema: fbc.SchemaBundle, Package: "p", Name: "p.v2", JSON: []byte(`{}`)},
	} {
		if err := related.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(mirror.Related{"p": {"p.v1": {"x.test/a"}, "p.v2": nil}}, related); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := related.Add(fbc.Object{Schema: fbc.SchemaBundle, JSON: []byte(`{"relatedImages":7}`)}); err == nil {
		t.Error("a number is no list of images")
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0", 64)
	images := mirror.Images(map[string][]string{
		"p.v1": {"nginx", "quay.io/acme/x:v1" + digest, "docker.io/library/nginx:latest", "Not An Image"},
		"p.v2": {"quay.io/acme/x" + digest},
	})
	var got []string
	for _, one := range images {
		line := one.Ref + " for " + strings.Join(one.For, ",")
		if one.Err != nil {
			line += " fails"
		}
		got = append(got, line)
	}
	want := []string{
		"Not An Image for p.v1 fails",
		"docker.io/library/nginx:latest for p.v1",
		"quay.io/acme/x" + digest + " for p.v1,p.v2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
