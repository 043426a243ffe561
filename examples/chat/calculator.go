package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"strings"
)

// maxExpression bounds what is calculated, in bytes, and with that how large a number can become.
const maxExpression = 200

// calculate works out + - * / %, parentheses and signs, exactly. It reads the expression as Go does, and takes
// nothing else of Go.
func calculate(expression string) (string, error) {
	if len(expression) > maxExpression {
		return "", fmt.Errorf("the expression has %d bytes, want at most %d", len(expression), maxExpression)
	}
	tree, err := parser.ParseExpr(strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", ":",
		"/").Replace(expression))
	if err != nil {
		return "", fmt.Errorf("%q is no arithmetic expression", expression)
	}
	value, err := evaluate(tree)
	if err != nil {
		return "", err
	}
	if whole := constant.ToInt(value); whole.Kind() == constant.Int {
		return whole.ExactString(), nil
	}
	number, _ := constant.Float64Val(value)
	return fmt.Sprintf("%.12g", number), nil
}

func evaluate(e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.BasicLit:
		if e.Kind != token.INT && e.Kind != token.FLOAT || strings.ContainsAny(e.Value, "xXbBoOpPeE_") {
			return nil, fmt.Errorf("%s is no plain number", e.Value)
		}
		number := e.Value
		if e.Kind == token.INT { // 007 is seven, for people
			number = strings.TrimLeft(number, "0")
			if number == "" {
				number = "0"
			}
		}
		return constant.MakeFromLiteral(number, e.Kind, 0), nil
	case *ast.UnaryExpr:
		x, err := evaluate(e.X)
		if err != nil || e.Op != token.ADD && e.Op != token.SUB {
			return nil, errors.Join(err, unknown(e.Op, err))
		}
		return constant.UnaryOp(e.Op, x, 0), nil
	case *ast.BinaryExpr:
		x, err := evaluate(e.X)
		if err != nil {
			return nil, err
		}
		y, err := evaluate(e.Y)
		if err != nil {
			return nil, err
		}
		return combine(x, e.Op, y)
	}
	return nil, errors.New("the calculator knows numbers, + - * / % and parentheses only")
}

// unknown is the error of an operator, unless there is one already.
func unknown(op token.Token, err error) error {
	if err != nil {
		return nil
	}
	return fmt.Errorf("the calculator does not know the operator %s", op)
}

func combine(x constant.Value, op token.Token, y constant.Value) (constant.Value, error) {
	switch op {
	case token.ADD, token.SUB, token.MUL:
		return constant.BinaryOp(x, op, y), nil
	case token.QUO, token.REM:
		if constant.Sign(y) == 0 {
			return nil, errors.New("it divides by zero")
		}
		if op == token.QUO {
			return constant.BinaryOp(constant.ToFloat(x), op, constant.ToFloat(y)), nil
		}
		x, y = constant.ToInt(x), constant.ToInt(y)
		if x.Kind() != constant.Int || y.Kind() != constant.Int {
			return nil, errors.New("the remainder % is for whole numbers")
		}
		return constant.BinaryOp(x, op, y), nil
	}
	return nil, unknown(op, nil)
}
