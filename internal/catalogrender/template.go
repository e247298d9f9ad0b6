package catalogrender

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/template"
	"github.com/operator-framework/operator-registry/alpha/template/basic"
	"github.com/operator-framework/operator-registry/alpha/template/semver"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// maxBundles is how many bundles one template may name, the same one each time or others. The
// package with most versions that is published has a tenth of that.
const maxBundles = 5000

// errTooMany says that a template names more than [maxBundles].
var errTooMany = fmt.Errorf("a template can have %d bundles at most", maxBundles)

// Template makes a catalog of a template, of the type that its schema says. The images of
// bundles that it names are pulled, each once.
func (r Renderer) Template(ctx context.Context, text []byte) (*declcfg.DeclarativeConfig, error) {
	_, err := fbc.NewDecoder(bytes.NewReader(text), fbc.Limits{}).Next()
	if _, beyond := errors.AsType[*fbc.LimitError](err); beyond {
		return nil, err // the library has no bounds
	}
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
	made, again, err := template.NewRegistry().CreateTemplateBySchema(bytes.NewReader(text), render)
	if err != nil {
		return nil, err
	}
	if made.Type() != new(basic.Factory).Type() && made.Type() != new(semver.Factory).Type() {
		return nil, fmt.Errorf("it is a template of the type %q, and it takes basic or semver", made.Type())
	}
	return made.Render(ctx, again)
}
