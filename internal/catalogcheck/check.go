package catalogcheck

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Check returns the problems of the catalog in root, sorted by file, object,
// severity and message; what concerns no file comes first. There are at most
// 10,000, and then a last one or two that say how many are left out. It looks into the
// images of bundles, unless look is nil. The error is that of ctx.
func Check(ctx context.Context, root fs.FS, look Look) ([]Problem, error) {
	c := checker{report: &report{omitted: map[Severity]int{}}, packages: map[string]*pkg{}, gone: gone{names: map[string]struct{}{}}}
	for o, err := range (fbc.Folder{Root: root}).Objects(ctx) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.read(o, err)
	}
	if c.objects == 0 && !c.incomplete {
		c.report.errorf(fbc.FileObject{}, "the catalog has no objects")
	}
	for _, name := range slices.Sorted(maps.Keys(c.packages)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.check(c.packages[name])
		if look == nil {
			continue
		}
		if err := c.checkContents(ctx, c.packages[name], look); err != nil {
			return nil, err
		}
	}
	c.noteGone()
	return c.report.sorted(), nil
}

// checker is the state of one Check.
type checker struct {
	report   *report
	packages map[string]*pkg
	objects  int
	// incomplete says that something could not be read: names that seem to be
	// missing may be in there.
	incomplete bool
	gone       gone
	// looked counts the images that were looked into.
	looked int
}

// pkg is what a catalog has of one package, whatever the files it is in.
type pkg struct {
	name string
	// first is some object of the package.
	first        fbc.FileObject
	packages     []object[packageFields]
	channels     []object[channelFields]
	bundles      []object[bundleFields]
	deprecations []object[deprecationsFields]

	// channelNames and versions have what exists, malformed or not.
	channelNames map[string]bool
	versions     versions
}

// read takes the next object of the catalog, or the error in its place.
func (c *checker) read(o fbc.FileObject, err error) {
	c.objects++
	var malformed *fbc.ObjectError
	switch {
	case errors.As(err, &malformed):
		c.report.errorf(o, "%v", malformed.Err)
		c.incomplete = c.incomplete || o.Name == "" || o.Owner() == ""
		c.place(o, true)
	case err != nil:
		c.unreadable(o, err)
	case isEmpty(o.JSON):
		c.objects--
	default:
		c.identify(o)
	}
}

// unreadable reports that nothing behind o can be read in its file.
func (c *checker) unreadable(o fbc.FileObject, err error) {
	c.incomplete = true
	if file, ok := errors.AsType[*fbc.FileError](err); ok {
		err = file.Err
	}
	if cut, ok := errors.AsType[*fbc.StreamError](err); ok {
		o.Position = cut.Position
		c.report.errorf(o, "%v; the rest of the file is not checked", cut.Err)
		return
	}
	c.report.errorf(o, "%v", err)
}

func isEmpty(object []byte) bool {
	for range fbc.Fields(object) {
		return false
	}
	return true
}

// identify reports what is missing to tell what o is, and takes it otherwise.
func (c *checker) identify(o fbc.FileObject) {
	switch o.Schema {
	case "":
		c.report.errorf(o, "the object has no schema")
		return
	case fbc.SchemaPackage, fbc.SchemaChannel, fbc.SchemaBundle:
		if o.Name == "" {
			c.report.errorf(o, "the object has no name")
			return
		}
	case fbc.SchemaDeprecations:
	default:
		c.unknownSchema(o)
		return
	}
	if o.Owner() == "" {
		c.report.errorf(o, "the object has no package")
		return
	}
	if o.Schema == fbc.SchemaPackage && o.Owner() != o.Name {
		c.report.errorf(o, "the object is named %s but belongs to package %s", excerpt.Quote(o.Name), excerpt.Quote(o.Package))
	}
	c.place(o, false)
}

// place puts o into its package, if it can be told which one that is.
func (c *checker) place(o fbc.FileObject, malformed bool) {
	if o.Owner() == "" {
		return
	}
	p := c.packages[o.Owner()]
	if p == nil {
		p = &pkg{name: o.Owner(), first: o}
		p.first.JSON = nil
	}
	var err error
	switch o.Schema {
	case fbc.SchemaPackage:
		p.packages, err = appendDecoded(p.packages, o, malformed)
	case fbc.SchemaChannel:
		p.channels, err = appendDecoded(p.channels, o, malformed)
	case fbc.SchemaBundle:
		p.bundles, err = appendDecoded(p.bundles, o, malformed)
	case fbc.SchemaDeprecations:
		p.deprecations, err = appendDecoded(p.deprecations, o, malformed)
	default:
		return
	}
	c.packages[o.Owner()] = p
	if err != nil {
		c.report.errorf(o, "%v", err)
	}
}

// appendDecoded does not decode what is known to be malformed.
func appendDecoded[T any](objects []object[T], o fbc.FileObject, malformed bool) ([]object[T], error) {
	if malformed {
		o.JSON = nil
		return append(objects, object[T]{at: o, malformed: true}), nil
	}
	decoded, err := decode[T](o)
	if err == nil {
		// What else readers refuse is told with more of its context.
		if refused := catalogclient.CheckObject(o.Object); isLimit(refused) {
			err, decoded.malformed = refused, true
		}
	}
	return append(objects, decoded), err
}

func isLimit(err error) bool {
	_, ok := errors.AsType[*fbc.LimitError](err)
	return ok
}
