package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// Config is what a console is made from. Every field is required.
type Config struct {
	// Host is what a browser calls this server, with the port.
	Host string
	// Token is what the first URL has to have. Once is another one, which is taken once.
	Token, Once string
	// Cluster is what the cluster is called, for people.
	Cluster string

	Live   Live
	Asking Asking
	Offers Offers
	Now    func() time.Time
}

// console answers requests.
type console struct {
	Config

	pages map[string]*template.Template
}

//go:embed templates assets
var files embed.FS

// The pages, by the names of their templates.
const (
	pageExtensions = "extensions"
	pageExtension  = "extension"
	pagePlan       = "plan"
	pageCatalogs   = "catalogs"
	pagePackages   = "packages"
	pagePackage    = "package"
	pageProblem    = "problem"
)

// New is a handler for all pages. The error is one of our own templates.
func New(cfg Config) (http.Handler, error) {
	c := &console{Config: cfg, pages: map[string]*template.Template{}}
	for _, name := range []string{pageExtensions, pageExtension, pagePlan, pageCatalogs, pagePackages, pagePackage, pageProblem} {
		page, err := template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading template %q: %w", name, err)
		}
		c.pages[name] = page
	}
	routes := http.NewServeMux()
	for pattern, answer := range map[string]http.HandlerFunc{
		"/{$}":                                 c.home,
		"/extensions":                          c.extensions,
		"/extensions/{name}":                   c.extension,
		"/extensions/{name}/plan":              c.plan,
		"/extensions/{name}/graph.svg":         c.extensionGraph,
		"/catalogs":                            c.catalogs,
		"/packages":                            c.packages,
		"/packages/{catalog}/{name}":           c.pack,
		"/packages/{catalog}/{name}/graph.svg": c.packageGraph,
		"/packages/{catalog}/{name}/icon":      c.icon,
		"/packages/{catalog}/{name}/manifest":  c.manifest,
		"/assets/{name}":                       c.asset,
		"/":                                    c.nowhere,
	} {
		routes.HandleFunc(pattern, within(answerTimeout, answer))
	}
	all := http.NewServeMux()
	all.Handle("/", bounded(maxRequests, routes))
	all.Handle("/extensions.live", bounded(maxStreams, http.HandlerFunc(c.follow)))
	return newGuard(cfg.Host, cfg.Token, cfg.Once, all), nil
}

// functions are what templates ask for. Texts are escaped by html/template besides.
var functions = template.FuncMap{
	"line": line, "text": harmless, "markdown": markdown, "web": webURL, "join": strings.Join, "age": age,
	"lower": strings.ToLower,
}

// page is what the layout shows around every page.
type page struct {
	Title   string
	Section string
	Cluster string
	// Absence is why no controller is running; empty if one is, or if that is unknown.
	Absence string
	// Missing is what could not be read, a line each.
	Missing []string
	Body    any
}

// show writes a page, once all of it is made.
func (c *console) show(w http.ResponseWriter, name string, code int, shown page) {
	shown.Cluster, shown.Absence = c.Cluster, c.Live.Absence()
	var out bytes.Buffer
	if err := c.pages[name].Execute(&out, shown); err != nil {
		http.Error(w, "the page cannot be made: "+line(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes()) // whoever asked has gone if it fails
}

// begin sends the top of a page for which much has to be asked, so that a browser shows that it
// comes. The rest is sent by finish.
func (c *console) begin(w http.ResponseWriter, name string, shown page) {
	shown.Cluster = c.Cluster
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := c.pages[name].ExecuteTemplate(w, "top", shown); err == nil {
		_ = http.NewResponseController(w).Flush() // it is sent later if it fails
	}
}

// finish sends the rest of a page, once all of it is made.
func (c *console) finish(w http.ResponseWriter, name string, shown page) {
	shown.Absence = c.Live.Absence()
	var out bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&out, "rest", shown); err != nil {
		out.Reset()
		out.WriteString("<p>The page cannot be made: " + template.HTMLEscapeString(line(err.Error())) + "</p>")
	}
	_, _ = w.Write(out.Bytes()) // whoever asked has gone if it fails
}

// problem is a page that says why there is no other.
func (c *console) problem(w http.ResponseWriter, code int, section, title string, missing ...string) {
	c.show(w, pageProblem, code, page{Title: title, Section: section, Missing: missing})
}

func (c *console) home(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/extensions", http.StatusSeeOther)
}

func (c *console) nowhere(w http.ResponseWriter, _ *http.Request) {
	c.problem(w, http.StatusNotFound, "", "There is no such page")
}

// assetTypes are all files that pages load.
var assetTypes = map[string]string{"style.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func (c *console) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind, known := assetTypes[name]
	if !known {
		c.nowhere(w, r)
		return
	}
	data, err := files.ReadFile("assets/" + name)
	if err != nil {
		c.nowhere(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(data)
}

// missing says what could not be read, and what for.
func missing(what string, err error) []string {
	if err == nil {
		return nil
	}
	return []string{line(what + ": " + err.Error())}
}

// asked is an object that a request is about.
type asked[T any] struct {
	name, kind, section string
	nameOf              func(*T) string
}

// sought is the object; nil if there is none, or if that is not known, in which case the request
// is answered.
func sought[T any](c *console, w http.ResponseWriter, about asked[T], seen Seen[T]) *T {
	found := find(seen.Items, about.name, about.nameOf)
	switch {
	case found != nil:
	case seen.Err != nil:
		c.problem(w, http.StatusServiceUnavailable, about.section, about.kind+" "+line(about.name), line(seen.Err.Error()))
	default:
		c.problem(w, http.StatusNotFound, about.section, fmt.Sprintf("There is no %s %q", about.kind, line(about.name)))
	}
	return found
}

// find is the item of a name; nil if there is none.
func find[T any](items []*T, name string, nameOf func(*T) string) *T {
	for _, item := range items {
		if nameOf(item) == name {
			return item
		}
	}
	return nil
}

func extensionName(ext *ocv1.ClusterExtension) string { return ext.Name }

func catalogName(catalog *ocv1.ClusterCatalog) string { return catalog.Name }

// age is how long ago something was, in the largest unit that fits.
func age(at, now time.Time) string {
	const day = 24 * time.Hour
	passed := now.Sub(at)
	switch {
	case at.IsZero():
		return "—"
	case passed < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(passed.Seconds())))
	case passed < time.Hour:
		return fmt.Sprintf("%d min", int(passed.Minutes()))
	case passed < day:
		return fmt.Sprintf("%d h", int(passed.Hours()))
	}
	return fmt.Sprintf("%d d", int(passed/day))
}
