package requirement

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// checkSubset refuses what makes values that are larger than the rule and the
// properties together. Cost is charged after each step, and most steps cost the
// same whatever they work on: a list that holds another one twice, which a third
// one holds twice, and so on, takes few steps to build and forever to compare.
func checkSubset(checked *ast.AST) error {
	var problem error
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if problem == nil {
			problem = checkExpression(checked, e)
		}
	}))
	return problem
}

func checkExpression(checked *ast.AST, e ast.Expr) error {
	switch e.Kind() {
	case ast.ListKind, ast.MapKind:
		if isConstant(e) {
			return nil
		}
		for _, element := range elements(e) {
			if !isFlat(checked, element) {
				return errors.New("a list or map may hold strings, numbers and parts of the properties only")
			}
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() == operators.Index && call.Args()[1].Kind() != ast.LiteralKind {
			return errors.New("an index may be a constant only")
		}
	case ast.StructKind:
		return fmt.Errorf("undeclared type %q", e.AsStruct().TypeName())
	default:
	}
	return nil
}

// elements of a list, or keys and values of a map.
func elements(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.ListKind {
		return e.AsList().Elements()
	}
	entries := e.AsMap().Entries()
	found := make([]ast.Expr, 0, 2*len(entries))
	for _, entry := range entries {
		found = append(found, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
	}
	return found
}

func isConstant(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind, ast.MapKind:
		for _, element := range elements(e) {
			if !isConstant(element) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// isFlat says that e holds nothing that the rule built, other than a string or a
// number. Variables are flat because lists have flat elements.
func isFlat(checked *ast.AST, e ast.Expr) bool {
	switch checked.GetType(e.ID()).Kind() {
	case cel.BoolKind, cel.IntKind, cel.UintKind, cel.DoubleKind, cel.StringKind, cel.BytesKind, cel.NullTypeKind, cel.TypeKind:
		return true
	default:
	}
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		return true
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Index:
			return true
		case overloads.TypeConvertDyn:
			return isFlat(checked, args[0])
		case operators.Conditional:
			return isFlat(checked, args[1]) && isFlat(checked, args[2])
		}
		return false
	default:
		return isConstant(e)
	}
}

func constants(checked *ast.AST) uint64 {
	var count uint64
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.LiteralKind {
			count++
		}
	}))
	return count
}
