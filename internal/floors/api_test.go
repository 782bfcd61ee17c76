package floors

import (
	"go/ast"
	goimporter "go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// importer reads packages from the export data that "go list -export" left.
func importer(packages []listed) types.Importer {
	files := map[string]string{}
	for _, p := range packages {
		files[p.ImportPath] = p.Export
	}
	return goimporter.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

// exposed is the paths of all packages whose types can be met by way of p's
// exported names: in signatures, exported fields, methods, constraints and type
// arguments. A type of another package is met, not looked into.
func exposed(p *types.Package) map[string]bool {
	v := visitor{home: p.Path(), seen: map[types.Type]bool{}, met: map[string]bool{}}
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) {
			v.visit(p.Scope().Lookup(name).Type())
		}
	}
	return v.met
}

type visitor struct {
	home string
	seen map[types.Type]bool
	met  map[string]bool
}

func (v visitor) visit(t types.Type) {
	if v.seen[t] {
		return
	}
	v.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		v.args(t.TypeArgs())
		if v.isHome(t.Obj()) {
			v.params(t.TypeParams())
			for m := range t.Methods() {
				v.exported(m)
			}
			v.visit(t.Underlying())
		}
	case *types.Alias:
		v.args(t.TypeArgs())
		v.isHome(t.Obj())
		v.visit(types.Unalias(t))
	case *types.Struct:
		for f := range t.Fields() {
			if f.Embedded() {
				v.visit(f.Type())
			}
			v.exported(f)
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			v.exported(m)
		}
		for e := range t.EmbeddedTypes() {
			v.visit(e)
		}
	case *types.Signature:
		v.params(t.TypeParams())
		v.visit(t.Params())
		v.visit(t.Results())
	case *types.Tuple:
		for x := range t.Variables() {
			v.visit(x.Type())
		}
	case *types.Union:
		for term := range t.Terms() {
			v.visit(term.Type())
		}
	case *types.Map:
		v.visit(t.Key())
		v.visit(t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		v.visit(t.Elem())
	}
}

// isHome notes the package of a type's name and tells whether it is the one
// being looked at.
func (v visitor) isHome(name *types.TypeName) bool {
	if name.Pkg() == nil { // error, comparable, any
		return false
	}
	v.met[name.Pkg().Path()] = true
	return name.Pkg().Path() == v.home
}

func (v visitor) exported(o types.Object) {
	if o.Exported() {
		v.visit(o.Type())
	}
}

func (v visitor) args(list *types.TypeList) {
	for t := range list.Types() {
		v.visit(t)
	}
}

func (v visitor) params(list *types.TypeParamList) {
	for p := range list.TypeParams() {
		v.visit(p.Constraint())
	}
}

func TestExposed(t *testing.T) {
	third := types.NewPackage("example.org/third", "third")
	name := types.NewTypeName(token.NoPos, third, "T", nil)
	types.NewNamed(name, types.NewStruct(nil, nil), nil)
	third.Scope().Insert(name)
	third.MarkComplete()

	for name, c := range map[string]struct {
		source string
		want   bool
	}{
		"variable":                      {"var V third.T", true},
		"parameter":                     {"func F(third.T) {}", true},
		"variadic pointer":              {"func F(...*third.T) {}", true},
		"result in map":                 {"func F() map[string]third.T { return nil }", true},
		"map key":                       {"var V map[third.T]int", true},
		"channel of slices":             {"var V chan []third.T", true},
		"function type":                 {"type F func(func(third.T))", true},
		"exported field":                {"type S struct { F third.T }", true},
		"embedded field":                {"type S struct { third.T }", true},
		"by an embedded unexported one": {"type s struct { F third.T }; type S struct { s }", true},
		"method":                        {"type S int; func (*S) M() third.T { panic(0) }", true},
		"method of an interface":        {"type I interface { M(third.T) }", true},
		"embedded interface":            {"type i interface { M(third.T) }; type I interface { i }", true},
		"alias":                         {"type A = third.T", true},
		"definition by it":              {"type D [3]third.T", true},
		"constraint":                    {"func F[X interface { third.T | int }]() {}", true},
		"type argument":                 {"type g[X any] struct{}; var V g[third.T]", true},
		"unexported type of a result":   {"type s struct { F third.T }; func F() s { return s{} }", true},
		"unexported function":           {"func f(third.T) {}", false},
		"unexported field":              {"type S struct { f third.T }", false},
		"unexported method":             {"type S int; func (S) m(third.T) {}", false},
		"unexported type":               {"type s struct { F third.T }", false},
		"inside a function":             {"func F() { var _ third.T }", false},
		"recursive type":                {"type L struct { Next *L }", false},
	} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "p.go", "package p; import \"example.org/third\"; var _ third.T; "+c.source, 0)
			require.NoError(t, err)
			config := types.Config{Importer: only{third}}
			p, err := config.Check("example.org/p", fset, []*ast.File{file}, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, exposed(p)["example.org/third"])
		})
	}
}

// only imports one package.
type only struct{ p *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.p, nil }
