package bundle

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Format is how the files of a bundle are to be understood. A bundle declares
// it, and a chart is told by its one folder, see [IsChart]; it is never guessed
// from what is in the files.
type Format string

// format is all that differs from one format of bundles to the next: how the files
// become a [Bundle], and the bundle becomes objects. Each is one file, and a line of
// [Bundle.format].
type format interface {
	contents
	configuration

	// validate adds to the findings what is wrong with a bundle that was read.
	validate(v *validator)

	// render is [Render], for a bundle that is valid.
	render(b *Bundle, opts Options) (Rendered, error)
}

// contents is how a format keeps a bundle in files.
type contents interface {
	// read reads the files of a bundle, after what declares its format. What is wrong
	// with them is added to the findings of the parser; the error is that of a file that
	// could not be read.
	read(p *parser) error

	// add takes an object out of the files, which has a kind.
	add(p *parser, at location, object *unstructured.Unstructured)

	// takesAnyObject says that a bundle may ship objects of any kind, each in the
	// namespace that it names.
	takesAnyObject() bool

	// identity is what a bundle says of itself, not yet judged. The error is an
	// [*UnsupportedError].
	identity(b *Bundle) (Identity, error)
}

// configuration is what a user can set for a bundle of a format.
type configuration interface {
	// configProperties are the schemas of the keys that a configuration has, in a fresh
	// map.
	configProperties(b *Bundle) map[string]any

	// parseConfig is [ParseConfig].
	parseConfig(b *Bundle, installNamespace string, inline []byte) (Config, error)
}

// format of the bundle. One that declares none, or one that is not known, is
// registry+v1, as all published bundles were always read.
func (b *Bundle) format() format {
	switch b.Format {
	case HelmChart:
		return helmChart{}
	case PlainV0:
		return plainV0{}
	default:
		return registryV1{}
	}
}
