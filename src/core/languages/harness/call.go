
// One call of a function: {"function": …, "arguments": [JSON texts]} on descriptor 0, the value as a tagged tree where whetstoneReport says
// (sandbox/frame.md). It stands behind the program, whose init functions run before it; types are the ones that the function declares.

type whetstoneBad string

func whetstoneLeave(report string, code int) {
	whetstoneReport().WriteString(report)
	whetstoneOs.Exit(code)
}

func whetstoneParse(text string) interface{} {
	decoder := whetstoneJson.NewDecoder(whetstoneStrings.NewReader(text))
	decoder.UseNumber()
	var value interface{}
	if decoder.Decode(&value) != nil {
		whetstoneLeave("Sbad-arguments", 1)
	}
	return value
}

// As the type that the function declares; panics with whetstoneBad.
func whetstoneFrom(value interface{}, to whetstoneReflect.Value) {
	text, isText := value.(string)
	number, isNumber := value.(whetstoneJson.Number)
	if to.Kind() == whetstoneReflect.Interface && to.NumMethod() == 0 {
		if value != nil {
			to.Set(whetstoneReflect.ValueOf(whetstonePlain(value)))
		}
		return
	}
	switch to.Kind() {
	case whetstoneReflect.Bool:
		if truth, ok := value.(bool); ok {
			to.SetBool(truth)
			return
		}
	case whetstoneReflect.String:
		if isText {
			to.SetString(text)
			return
		}
	case whetstoneReflect.Int, whetstoneReflect.Int8, whetstoneReflect.Int16, whetstoneReflect.Int32, whetstoneReflect.Int64:
		if isText && to.Kind() == whetstoneReflect.Int32 && whetstoneUtf8.RuneCountInString(text) == 1 {
			only, _ := whetstoneUtf8.DecodeRuneInString(text)
			to.SetInt(int64(only))
			return
		}
		if whole, wrong := whetstoneStrconv.ParseInt(number.String(), 10, to.Type().Bits()); isNumber && wrong == nil {
			to.SetInt(whole)
			return
		}
	case whetstoneReflect.Uint, whetstoneReflect.Uint8, whetstoneReflect.Uint16, whetstoneReflect.Uint32, whetstoneReflect.Uint64:
		if isText && to.Kind() == whetstoneReflect.Uint8 && len(text) == 1 {
			to.SetUint(uint64(text[0]))
			return
		}
		if whole, wrong := whetstoneStrconv.ParseUint(number.String(), 10, to.Type().Bits()); isNumber && wrong == nil {
			to.SetUint(whole)
			return
		}
	case whetstoneReflect.Float32, whetstoneReflect.Float64:
		if float, wrong := number.Float64(); isNumber && wrong == nil {
			to.SetFloat(float)
			return
		}
	case whetstoneReflect.Ptr:
		if value != nil {
			to.Set(whetstoneReflect.New(to.Type().Elem()))
			whetstoneFrom(value, to.Elem())
		}
		return
	case whetstoneReflect.Slice, whetstoneReflect.Array:
		if isText && to.Kind() == whetstoneReflect.Slice && to.Type().Elem().Kind() == whetstoneReflect.Uint8 {
			to.SetBytes([]byte(text))
			return
		}
		if items, ok := value.([]interface{}); ok {
			if to.Kind() == whetstoneReflect.Slice {
				to.Set(whetstoneReflect.MakeSlice(to.Type(), len(items), len(items)))
			}
			if to.Len() == len(items) {
				for index, item := range items {
					whetstoneFrom(item, to.Index(index))
				}
				return
			}
		}
	case whetstoneReflect.Map:
		if items, ok := value.(map[string]interface{}); ok {
			to.Set(whetstoneReflect.MakeMap(to.Type()))
			for name, item := range items {
				key, element := whetstoneReflect.New(to.Type().Key()).Elem(), whetstoneReflect.New(to.Type().Elem()).Elem()
				if kind := key.Kind(); kind >= whetstoneReflect.Int && kind <= whetstoneReflect.Float64 {
					whetstoneFrom(whetstoneJson.Number(name), key)
				} else {
					whetstoneFrom(name, key)
				}
				whetstoneFrom(item, element)
				to.SetMapIndex(key, element)
			}
			return
		}
	}
	panic(whetstoneBad("an argument is no " + to.Type().String() + ", which the function takes"))
}

// For a function that takes anything.
func whetstonePlain(value interface{}) interface{} {
	switch one := value.(type) {
	case whetstoneJson.Number:
		if whole, wrong := whetstoneStrconv.Atoi(one.String()); wrong == nil {
			return whole
		}
		float, _ := one.Float64()
		return float
	case []interface{}:
		for index := range one {
			one[index] = whetstonePlain(one[index])
		}
	case map[string]interface{}:
		for name := range one {
			one[name] = whetstonePlain(one[name])
		}
	}
	return value
}

func whetstoneTo(value whetstoneReflect.Value, out *whetstoneStrings.Builder) {
	switch value.Kind() {
	case whetstoneReflect.Invalid:
		out.WriteString(`["n"]`)
	case whetstoneReflect.Bool:
		out.WriteString(`["b",` + whetstoneStrconv.FormatBool(value.Bool()) + "]")
	case whetstoneReflect.Int, whetstoneReflect.Int8, whetstoneReflect.Int16, whetstoneReflect.Int32, whetstoneReflect.Int64:
		out.WriteString(`["i","` + whetstoneStrconv.FormatInt(value.Int(), 10) + `"]`)
	case whetstoneReflect.Uint8:
		whetstoneQuote(string([]byte{byte(value.Uint())}), out)
	case whetstoneReflect.Uint, whetstoneReflect.Uint16, whetstoneReflect.Uint32, whetstoneReflect.Uint64:
		out.WriteString(`["i","` + whetstoneStrconv.FormatUint(value.Uint(), 10) + `"]`)
	case whetstoneReflect.Float32, whetstoneReflect.Float64:
		text := whetstoneStrconv.FormatFloat(value.Float(), 'g', -1, value.Type().Bits())
		out.WriteString(`["f","` + whetstoneStrings.ToLower(whetstoneStrings.TrimPrefix(text, "+")) + `"]`)
	case whetstoneReflect.String:
		whetstoneQuote(value.String(), out)
	case whetstoneReflect.Ptr, whetstoneReflect.Interface:
		whetstoneTo(value.Elem(), out)
	case whetstoneReflect.Slice, whetstoneReflect.Array:
		out.WriteString(`["l",[`)
		for index := 0; index < value.Len(); index++ {
			if index > 0 {
				out.WriteByte(',')
			}
			whetstoneTo(value.Index(index), out)
		}
		out.WriteString("]]")
	case whetstoneReflect.Map:
		out.WriteString(`["d",[`)
		for index, key := range value.MapKeys() {
			if index > 0 {
				out.WriteByte(',')
			}
			out.WriteByte('[')
			whetstoneTo(key, out)
			out.WriteByte(',')
			whetstoneTo(value.MapIndex(key), out)
			out.WriteByte(']')
		}
		out.WriteString("]]")
	default:
		whetstoneLeave("Sunserialisable", 1)
	}
}

func whetstoneQuote(text string, out *whetstoneStrings.Builder) {
	quoted, _ := whetstoneJson.Marshal(text)
	out.WriteString(`["s",`)
	out.Write(quoted)
	out.WriteByte(']')
}

func whetstoneCall(function interface{}, arguments []interface{}) string {
	call := whetstoneReflect.ValueOf(function)
	kind := call.Type()
	if kind.NumIn() != len(arguments) || kind.IsVariadic() {
		return "Starget-not-found"
	}
	given := make([]whetstoneReflect.Value, len(arguments))
	for index := range arguments {
		given[index] = whetstoneReflect.New(kind.In(index)).Elem()
		whetstoneFrom(arguments[index], given[index])
	}
	results := call.Call(given)
	var out whetstoneStrings.Builder
	out.WriteByte('V')
	switch len(results) {
	case 0:
		out.WriteString(`["n"]`)
	case 1:
		whetstoneTo(results[0], &out)
	default:
		out.WriteString(`["l",[`)
		for index, result := range results {
			if index > 0 {
				out.WriteByte(',')
			}
			whetstoneTo(result, &out)
		}
		out.WriteString("]]")
	}
	return out.String()
}

func init() {
	text, _ := whetstoneIo.ReadAll(whetstoneOs.Stdin)
	var request struct {
		Function  string
		Arguments []string
	}
	if whetstoneJson.Unmarshal(text, &request) != nil {
		whetstoneLeave("Sbad-arguments", 1)
	}
	arguments := make([]interface{}, len(request.Arguments))
	for index, one := range request.Arguments {
		arguments[index] = whetstoneParse(one)
	}
	function, found := whetstoneFunctions[request.Function]
	if !found {
		whetstoneLeave("Starget-not-found", 1)
	}
	defer func() {
		if problem := recover(); problem != nil {
			if bad, ok := problem.(whetstoneBad); ok {
				whetstoneOs.Stderr.WriteString(string(bad) + "\n")
				whetstoneLeave("Sruntime-error", 1)
			}
			panic(problem)
		}
	}()
	report := whetstoneCall(function, arguments)
	code := 0
	if report[0] == 'S' {
		code = 1
	}
	whetstoneLeave(report, code)
}
