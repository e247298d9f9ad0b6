package policyfile

import (
	"slices"
	"strings"
	"testing"
)

func TestLooseEnds(t *testing.T) {
	t.Parallel()
	const anchor, dot, end = "does not begin with ^", "has a dot in the host", "does not say where the host"
	for expression, want := range map[string][]string{
		`^https://github\.com/acme/`:                     nil,
		`^https://github\.com/acme/[^@]+@refs/tags/v1.2`: nil,
		`^https://github.com/acme/`:                      {dot},
		`https://github\.com/acme/`:                      {anchor},
		`github.com/acme`:                                {anchor},
		`^https://github[.]com/`:                         nil,
		`^https://(a|b)\.corp\.example$`:                 nil,
		`^https://[a-z.]+\.corp\.example/x`:              nil,
		`^https://.+\.corp\.example/x`:                   nil,
		`^https://.*`:                                    nil,
		`^https://github\.com`:                           {end},
		`^https://github.com`:                            {dot, end},
		`^(https://a\.test/|https://b\.test/)`:           nil,
		`^https://a\.test/|^https://b.test/`:             {dot},
		`^https://a\.test/|https://b\.test/`:             {anchor},
		`(^x)`:                                           nil,
		`^a|b`:                                           {anchor},
		`\Aa`:                                            nil,
		`^[^@]+@corp\.example$`:                          nil,
		`^[^@]+@corp.example$`:                           {dot},
		`^[^@]+@corp\.example`:                           {end},
		`@corp\.example$`:                                {anchor},
		`^[^@]+@corp\.example\z`:                         nil,
		`^[^@]+`:                                         nil,
		`^https://localhost:8443/`:                       nil,
	} {
		got := looseEnds(expression)
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
