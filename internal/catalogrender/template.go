package catalogrender

import (
	"context"
	"fmt"
	"io"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/template"
	"github.com/operator-framework/operator-registry/alpha/template/basic"
	"github.com/operator-framework/operator-registry/alpha/template/semver"
)

// maxBundles is how many bundles one template may name, the same one each time or others. The
// package with most versions that is published has a tenth of that.
const maxBundles = 5000

// errTooMany says that a template names more than [maxBundles].
var errTooMany = fmt.Errorf("a template can have %d bundles at most", maxBundles)

// Template makes a catalog of a template, of the type that its schema says. The images of
// bundles that it names are pulled, each once.
func (r Renderer) Template(ctx context.Context, from io.Reader) (*declcfg.DeclarativeConfig, error) {
	pulled, named := map[string]*declcfg.DeclarativeConfig{}, 0
	render := template.BundleRenderer(func(ctx context.Context, ref string) (_ *declcfg.DeclarativeConfig, err error) {
		if named++; named > maxBundles {
			return nil, errTooMany
		}
		if pulled[ref] == nil {
			pulled[ref], err = r.bundle(ctx, ref)
		}
		return pulled[ref], err
	})
	made, again, err := template.NewRegistry().CreateTemplateBySchema(from, render)
	if err != nil {
		return nil, err
	}
	if made.Type() != new(basic.Factory).Type() && made.Type() != new(semver.Factory).Type() {
		return nil, fmt.Errorf("it is a template of the type %q, and it takes basic or semver", made.Type())
	}
	return made.Render(ctx, again)
}
