package excerpt_test

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, text, want string }{
		"dial": {
			reason: "addresses change with every pod",
			text:   `Get "https://registry.test/v2/": dial tcp 10.1.2.3:443: connect: connection refused`,
			want:   `Get "https://registry.test/v2/": dial tcp: connect: connection refused`,
		},
		"dial IPv6": {reason: "likewise", text: "dial tcp [::1]:5000: connect: connection refused", want: "dial tcp: connect: connection refused"},
		"read": {
			reason: "the local port changes with every attempt",
			text:   "read tcp 10.0.0.1:54321->10.0.0.2:443: read: connection reset by peer",
			want:   "read tcp: read: connection reset by peer",
		},
		"lookup": {
			reason: "the resolver's address is of no use, the name is",
			text:   "dial tcp: lookup registry.test on 10.96.0.10:53: no such host",
			want:   "dial tcp: lookup registry.test: no such host",
		},
		"signed URL": {
			reason: "the query is a credential",
			text:   `Get "https://bucket.test/blob?X-Amz-Signature=abc&x=y": EOF`,
			want:   `Get "https://bucket.test/blob": EOF`,
		},
		"user information": {reason: "a credential", text: "proxy http://user:pa55@proxy.test:3128 failed", want: "proxy http://proxy.test:3128 failed"},
		"user information of any URL": {
			reason: "a line of a log may have it", text: "cannot connect to postgres://admin:hunter2@db.test/prod?sslmode=disable",
			want: "cannot connect to postgres://db.test/prod",
		},
		"user information with @": {reason: "a password may have it", text: "amqp://user:p@ss@mq.test:5672/", want: "amqp://mq.test:5672/"},
		"a digest":                {reason: "it is no host", text: "pulling oci://registry.test/app@sha256:abc", want: "pulling oci://registry.test/app@sha256:abc"},
		"a digest of a tag":       {reason: "likewise", text: "pulling registry.test:5000/app:v1@sha256:abc", want: "pulling registry.test:5000/app:v1@sha256:abc"},
		"a source of a driver":    {reason: "it has no scheme", text: "open root:hunter2@tcp(db.test:3306)/prod", want: "open root:…@tcp(db.test:3306)/prod"},
		"a password":              {reason: "by its name", text: "DB_PASSWORD=hunter2 host=db.test", want: "DB_PASSWORD=… host=db.test"},
		"a quoted password":       {reason: "with all its words", text: `password="a, b" x`, want: `password=… x`},
		"a password of YAML":      {reason: "by its name", text: "user: me, password: hunter2, db: a", want: "user: me, password: …, db: a"},
		"secrets of JSON": {
			reason: "by their names", text: `{"user":"me","password":"hu\"nter2","apiKey": "k","port":1}`,
			want: `{"user":"me","password":…,"apiKey": …,"port":1}`,
		},
		"JSON in JSON":     {reason: "likewise", text: `{"msg":"{\"token\":\"abc\",\"n\":1}"}`, want: `{"msg":"{\"token\":…,\"n\":1}"}`},
		"a token":          {reason: "by its name", text: "GET /x?access_token=abc&y=1", want: "GET /x?access_token=…&y=1"},
		"a header":         {reason: "a credential", text: "sent Authorization: Basic dXNlcjpwYXNz to it", want: "sent Authorization: … to it"},
		"a bearer":         {reason: "a credential", text: "with bearer 0123456789abcdefghijkl", want: "with bearer …"},
		"a signed token":   {reason: "by its form", text: "refused eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl by it", want: "refused … by it"},
		"a challenge":      {reason: "it says where to ask", text: `Bearer realm="https://auth.test/token",service="registry.test"`, want: `Bearer realm="https://auth.test/token",service="registry.test"`},
		"what failed":      {reason: "a token before a colon is none", text: "fetching a token: unauthorized", want: "fetching a token: unauthorized"},
		"a Secret by name": {reason: "its name is none", text: `Secret "db" not found`, want: `Secret "db" not found`},
		"retry statistics": {
			reason: "times change with every attempt",
			text:   "(heuristic tuning data: total 100 @1.2 ms, last retry 100 @0.1 ms, last progress @ 1 ms): unexpected EOF",
			want:   "unexpected EOF",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Scrub(tc.text); got != tc.want {
				t.Errorf("Scrub(%q) = %q, want %q (%s)", tc.text, got, tc.want, tc.reason)
			}
			if again := excerpt.Scrub(tc.want); again != tc.want {
				t.Errorf("once more it is %q", again)
			}
		})
	}
}
