package requirement

import (
	"errors"
	"fmt"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Names that rules know.
const (
	propertiesVariable = "properties"
	semverCompare      = "semver_compare"
)

// functions that rules may use: those of the standard library whose work is
// bounded by their arguments. Left out are regular expressions, which take a few
// bytes to say something expensive, and time, which reads time zones from disk.
var functions = []string{
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.In,
	overloads.Size, overloads.Contains, overloads.EndsWith, overloads.StartsWith,
	overloads.TypeConvertType, overloads.TypeConvertDyn, overloads.TypeConvertBool, overloads.TypeConvertBytes,
	overloads.TypeConvertDouble, overloads.TypeConvertInt, overloads.TypeConvertString, overloads.TypeConvertUint,
}

var environment = sync.OnceValues(func() (*cel.Env, error) {
	subset := env.NewLibrarySubset()
	for _, name := range functions {
		subset.AddIncludedFunctions(env.NewFunction(name))
	}
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.Variable(propertiesVariable, cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Function(semverCompare, cel.Overload(semverCompare,
			[]*cel.Type{cel.StringType, cel.StringType}, cel.IntType, cel.BinaryBinding(compareVersions))),
		cel.ParserRecursionLimit(maxRuleDepth),
	)
})

func compareVersions(a, b ref.Val) ref.Val {
	var parsed [2]semver.Version
	for i, value := range []ref.Val{a, b} {
		text, ok := value.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(value)
		}
		version, err := semver.Parse(string(text))
		if err != nil {
			return types.WrapErr(err)
		}
		parsed[i] = version
	}
	return types.Int(parsed[0].Compare(parsed[1]))
}

// program is a rule that is ready to be evaluated. It is safe for concurrent use.
type program struct {
	program cel.Program

	// weight of a step. Constants are steps that cost nothing; each step that
	// does stands for its share of them.
	weight uint64
}

// compile a rule whose type is bool, as far as that is known.
func compile(rule string) (*program, error) {
	if len(rule) > maxRule {
		return nil, fmt.Errorf("longer than %d bytes", maxRule)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil, errors.New(issues.Errors()[0].Message)
	}
	if result := compiled.OutputType(); result != cel.BoolType && result != cel.DynType {
		return nil, fmt.Errorf("its type is %s", result)
	}
	if err := checkSubset(compiled.NativeRep()); err != nil {
		return nil, err
	}
	weight := 1 + constants(compiled.NativeRep())/constantsPerCost
	planned, err := env.Program(compiled,
		cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxEvaluationCost/weight), cel.CostTracking(costs{}))
	if err != nil {
		return nil, err
	}
	return &program{program: planned, weight: weight}, nil
}

// evaluate the rule on the properties of one extension. A rule that fails,
// because there is no such key, is not true. The only error is that it costs too
// much.
func (p *program) evaluate(properties ref.Val) (isTrue bool, cost uint64, err error) {
	value, details, err := p.program.Eval(map[string]any{propertiesVariable: properties})
	cost = costEvaluation
	if spent := details.ActualCost(); spent != nil {
		cost += *spent * p.weight
	}
	if _, cancelled := errors.AsType[interpreter.EvalCancelledError](err); cancelled {
		return false, cost, err
	}
	return err == nil && value == types.True, cost, nil
}

// costs of calls, by the data that they go over.
type costs struct{}

// CallCost of any call, whatever the overload.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	size := shallow(result)
	for _, arg := range args {
		switch function {
		case operators.Equals, operators.NotEquals, operators.In:
			size += deep(arg)
		default:
			size += shallow(arg)
		}
	}
	cost := 1 + size/bytesPerCost
	return &cost
}

// shallow size of a value, in bytes.
func shallow(value ref.Val) uint64 {
	switch value := value.(type) {
	case types.String:
		return uint64(len(value))
	case types.Bytes:
		return uint64(len(value))
	}
	return 0
}

// deep size of a value, in bytes. What a rule builds is no deeper than its text
// and the properties are.
func deep(value ref.Val) uint64 {
	iterable, ok := value.(traits.Iterable)
	if !ok {
		return shallow(value)
	}
	values, _ := value.(traits.Mapper)
	var size uint64
	for elements := iterable.Iterator(); elements.HasNext() == types.True; {
		element := elements.Next()
		size += bytesPerCost + deep(element)
		if values != nil {
			size += deep(values.Get(element))
		}
	}
	return size
}
