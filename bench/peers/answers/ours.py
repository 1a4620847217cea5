"""Paracord by its shared library: tensors of plain lists, and the ops of ops.py by name."""
import ctypes as c
import struct

DTYPES = ["bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64"]
FORMATS = {"bool": "?", "u8": "B", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}


class Shape(c.Structure):
    _fields_ = [("ndim", c.c_int), ("dim", c.c_int64 * 8)]


class Device(c.Structure):
    _fields_ = [("type", c.c_int16), ("index", c.c_int16)]


class Scope(c.Structure):
    _fields_ = [("depth", c.c_int)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 512)]


class Conv(c.Structure):
    _fields_ = [("reserved", c.c_int), ("stride", c.c_int * 2), ("padding", c.c_int * 2), ("activation", c.c_int),
                ("pool", c.c_int), ("dilation", c.c_int * 2), ("groups", c.c_int), ("same", c.c_bool)]


class Transposed(c.Structure):
    _fields_ = [("reserved", c.c_int), ("stride", c.c_int * 2), ("padding", c.c_int * 2), ("output_padding", c.c_int * 2),
                ("dilation", c.c_int * 2), ("groups", c.c_int)]


class Pool(c.Structure):
    _fields_ = [("reserved", c.c_int), ("kernel", c.c_int * 2), ("stride", c.c_int * 2), ("padding", c.c_int * 2),
                ("ceil", c.c_bool), ("exclude", c.c_bool)]


class Upsample(c.Structure):
    _fields_ = [("reserved", c.c_int), ("size", c.c_int64 * 2), ("scale", c.c_double * 2), ("mode", c.c_int), ("corners", c.c_bool)]


class Grid(c.Structure):
    _fields_ = [("reserved", c.c_int), ("nearest", c.c_bool), ("padding", c.c_int), ("corners", c.c_bool)]


class Binary(c.Structure):
    _fields_ = [("reserved", c.c_int), ("reduction", c.c_int), ("weight", c.c_void_p), ("pos_weight", c.c_void_p)]


class Classes(c.Structure):
    _fields_ = [("reserved", c.c_int), ("reduction", c.c_int), ("ignore", c.c_bool), ("ignore_index", c.c_int64),
                ("weight", c.c_void_p), ("smoothing", c.c_double)]


class Embedding(c.Structure):
    _fields_ = [("reserved", c.c_int), ("padded", c.c_bool), ("padding_idx", c.c_int64)]


T, P = c.c_void_p, c.POINTER(c.c_void_p)
I, I64, D, B = c.c_int, c.c_int64, c.c_double, c.c_bool
UNARY = ("neg exp log sqrt relu relu6 sigmoid tanh erf silu gelu gelu_tanh sum mean max contiguous clone abs square rsqrt sin cos "
         "softplus floor round sign isnan isfinite logical_not bitwise_not min prod any all count_nonzero")
BINARY = ("add sub mul div eq ne lt le gt ge matmul mse bce_with_logits cross_entropy minimum maximum pow bitwise_and bitwise_or "
          "bitwise_xor logical_and logical_or logical_xor dot")
ARGUMENTS = {
    "where": [T, T, T], "sum_dims": [T, Shape, B], "mean_dims": [T, Shape, B], "max_dim": [T, I, B, P],
    "argmax": [T, I, B], "min_dim": [T, I, B, P], "argmin": [T, I, B], "prod_dim": [T, I, B], "any_dims": [T, Shape, B],
    "all_dims": [T, Shape, B], "count_nonzero_dims": [T, Shape], "var": [T, D], "std": [T, D], "norm": [T, D],
    "var_dims": [T, Shape, D, B], "std_dims": [T, Shape, D, B], "norm_dims": [T, D, Shape, B], "fn_linear": [T, T, T, I], "fn_conv2d": [T, T, T, Conv], "fn_conv_transpose2d": [T, T, T, Transposed], "fn_max_pool2d": [T, Pool],
    "fn_avg_pool2d": [T, Pool], "fn_adaptive_avg_pool2d": [T, I64, I64], "fn_adaptive_max_pool2d": [T, I64, I64], "fn_upsample": [T, Upsample],
    "l1_loss": [T, T, I], "mse_loss": [T, T, I], "huber_loss": [T, T, D, I], "smooth_l1_loss": [T, T, D, I], "kl_div": [T, T, B, I],
    "fn_grid_sample": [T, T, Grid], "fn_bce": [T, T, Binary],
    "fn_bce_with_logits": [T, T, Binary], "fn_nll_loss": [T, T, Classes], "fn_cross_entropy": [T, T, Classes], "softmax": [T, I], "log_softmax": [T, I], "fn_dropout": [T, D], "cat": [P, I, I],
    "fn_embedding": [T, T, Embedding], "index_add": [T, I, T, T], "index_copy": [T, I, T, T], "index_put": [T, T, T, B],
    "gather": [T, I, T], "scatter_add": [T, I, T, T], "one_hot": [T, I64], "pad": [T, Shape, Shape, I, D], "flip": [T, Shape],
    "roll": [T, Shape, Shape], "repeat": [T, Shape], "tile": [T, Shape], "tril": [T, I64], "triu": [T, I64], "cumsum": [T, I],
    "sort": [T, I, B, P], "argsort": [T, I, B], "topk": [T, I64, I, B, P], "searchsorted": [T, T, B],
    "index_select": [T, I, T], "cast": [T, I], "reshape": [T, Shape], "permute": [T, Shape], "transpose": [T, I, I],
    "slice": [T, I, I64, I64, I64], "squeeze": [T, I], "unsqueeze": [T, I], "expand": [T, Shape],
    "flatten_from": [T, I], "full": [Shape, D, I, Device], "arange": [D, D, D, I, Device], "grad": [T], "clamp": [T, D, D], "outer": [T, T],
    "fn_layer_norm": [T, Shape, T, T, D], "fn_rms_norm": [T, Shape, T, D], "fn_group_norm": [T, I64, T, T, D],
    "fn_batch_norm": [T, T, T, T, T, B, D, D], "addmm": [T, T, T], "stack": [P, I, I], "masked_fill": [T, T, D],
    "from_data": [T, Shape, I, Device], "detach": [T], "to": [T, Device, I, B],
}
STATUS = {"saxpy": [T, D, T], "copy": [T, T], "fill": [T, D], "require_grad": [T, B], "backward_with": [T, T],
          "read": [T, T, c.c_size_t], "device_parse": [c.c_char_p, c.POINTER(Device)]}


def shape_of(sizes):
    return Shape(len(sizes), (c.c_int64 * 8)(*sizes))


def bytes_of(values, dtype):
    if dtype == "bf16":  # the upper half of a float: values are given as it holds them
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack("<%d%s" % (len(values), FORMATS[dtype]), *values)


def values_of(data, dtype):
    if dtype == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    return list(struct.unpack("<%d%s" % (len(data) // struct.calcsize(FORMATS[dtype]), FORMATS[dtype]), data))


class Refused(Exception):
    pass


class Library:
    def __init__(self, path, device):
        self.lib = c.CDLL(path)
        for name in (UNARY + " " + BINARY).split():
            ARGUMENTS[name] = [T] * (1 if name in UNARY.split() else 2)
        for name in "add_scalar sub_scalar mul_scalar div_scalar pow_scalar leaky_relu elu".split():
            ARGUMENTS[name] = [T, D]
        for names, result in ((ARGUMENTS, T), (STATUS, I)):
            for name, arguments in names.items():
                function = getattr(self.lib, "pc_" + name)
                function.argtypes, function.restype = arguments, result
        self.lib.pc_error_last.restype = c.POINTER(Error)
        self.lib.pc_scope_enter.restype = Scope
        self.lib.pc_tensor_shape.restype = Shape
        for name in ("shape", "dtype", "count"):
            getattr(self.lib, "pc_tensor_" + name).argtypes = [T]
        self.lib.pc_tensor_count.restype = I64
        self.device = Device()
        self.status("device_parse", device.encode(), c.byref(self.device))

    def refuse(self):
        message = self.lib.pc_error_last().contents.message.decode()
        self.lib.pc_error_clear()
        raise Refused(message or "no message")

    def status(self, name, *arguments):
        if getattr(self.lib, "pc_" + name)(*arguments) != 0:
            self.refuse()

    def call(self, name, *arguments):
        result = getattr(self.lib, "pc_" + name)(*arguments)
        if not result:
            self.refuse()
        return result

    def tensor(self, values, shape, dtype):
        data = bytes_of(values, dtype)
        return self.call("from_data", data, shape_of(shape), DTYPES.index(dtype), self.device)

    def read(self, t):
        dtype = DTYPES[self.lib.pc_tensor_dtype(t)]
        shape = self.lib.pc_tensor_shape(t)
        size = 2 if dtype == "bf16" else struct.calcsize(FORMATS[dtype])
        room = c.create_string_buffer(max(1, self.lib.pc_tensor_count(t) * size))
        self.status("read", t, room, self.lib.pc_tensor_count(t) * size)
        return {"dtype": dtype, "shape": list(shape.dim[:shape.ndim]),
                "values": values_of(room.raw[:self.lib.pc_tensor_count(t) * size], dtype)}


def pair(n):
    return (c.c_int * 2)(*([n, n] if isinstance(n, int) else n))


def apply(lib, op, t, a):
    """The results of an op of tensors `t` with arguments `a` (ops.py has the names)."""
    call, null = lib.call, None
    if op in ("sum_dims", "mean_dims", "any_dims", "all_dims"):
        return [call(op, t[0], shape_of(a["dims"]), a["keepdim"])]
    if op == "count_nonzero_dims":
        return [call(op, t[0], shape_of(a["dims"]))]
    if op in ("var", "std", "norm"):
        return [call(op, t[0], a["value"])]
    if op in ("var_dims", "std_dims"):
        return [call(op, t[0], shape_of(a["dims"]), a["value"], a["keepdim"])]
    if op == "norm_dims":
        return [call(op, t[0], a["value"], shape_of(a["dims"]), a["keepdim"])]
    if op in ("max_dim", "min_dim"):
        index = c.c_void_p()
        return [call(op, t[0], a["dim"], a["keepdim"], c.byref(index)), index.value]
    if op in ("argmax", "argmin", "prod_dim"):
        return [call(op, t[0], a["dim"], a["keepdim"])]
    if op == "linear":
        return [call("fn_linear", t[0], t[1], t[2] if len(t) > 2 else null, a.get("activation", 0))]
    if op == "conv2d":
        padding = a.get("padding", 0)
        spec = Conv(0, pair(a.get("stride", 1)), pair(0 if padding == "same" else padding), 0, 0, pair(a.get("dilation", 1)),
                    a.get("groups", 1), padding == "same")
        return [call("fn_conv2d", t[0], t[1], t[2] if len(t) > 2 else null, spec)]
    if op == "conv_transpose2d":
        spec = Transposed(0, *(pair(a.get(name, usual)) for name, usual in (("stride", 1), ("padding", 0), ("output_padding", 0),
                                                                            ("dilation", 1))), a.get("groups", 1))
        return [call("fn_conv_transpose2d", t[0], t[1], t[2] if len(t) > 2 else null, spec)]
    if op in ("max_pool2d", "avg_pool2d"):
        return [call("fn_" + op, t[0], Pool(0, pair(a["kernel"]), pair(a.get("stride", 0)), pair(a.get("padding", 0)), a.get("ceil", False),
                                            a.get("exclude", False)))]
    if op in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
        return [call("fn_" + op, t[0], *a["size"])]
    if op == "upsample":
        return [call("fn_upsample", t[0], Upsample(0, (c.c_int64 * 2)(*a.get("size", [])), (c.c_double * 2)(*a.get("scale", [])), a["mode"],
                                                  a["corners"]))]
    if op == "grid_sample":
        return [call("fn_grid_sample", t[0], t[1], Grid(0, a["nearest"], a["padding"], a["corners"]))]
    if op in ("binary_loss", "logits_loss"):
        how = Binary(0, a["reduction"], t[2] if len(t) > 2 else None, t[3] if len(t) > 3 else None)
        return [call("fn_bce" if op == "binary_loss" else "fn_bce_with_logits", t[0], t[1], how)]
    if op in ("l1_loss", "mse_loss"):
        return [call(op, t[0], t[1], a["reduction"])]
    if op in ("huber_loss", "smooth_l1_loss", "kl_div"):
        return [call(op, t[0], t[1], a["number"], a["reduction"])]
    if op in ("class_loss", "nll_loss"):
        how = Classes(0, a["reduction"], "ignore" in a, a.get("ignore", 0), t[2] if len(t) > 2 else None, a.get("smoothing", 0))
        return [call("fn_nll_loss" if op == "nll_loss" else "fn_cross_entropy", t[0], t[1], how)]
    if op == "embedding":
        return [call("fn_embedding", t[0], t[1], Embedding(0, "padding" in a, a.get("padding", 0)))]
    if op in ("index_add", "index_copy", "scatter_add"):
        return [call(op, t[0], a["dim"], t[1], t[2])]
    if op == "index_put":
        return [call(op, t[0], t[1], t[2], a["accumulate"])]
    if op == "gather":
        return [call(op, t[0], a["dim"], t[1])]
    if op == "one_hot":
        return [call(op, t[0], a["classes"])]
    if op in ("sort", "topk"):
        index, how = c.c_void_p(), [a["dim"], a["descending"]]
        return [call(op, t[0], *([a["k"]] if op == "topk" else []), *how, c.byref(index)), index.value]
    if op == "argsort":
        return [call(op, t[0], a["dim"], a["descending"])]
    if op == "searchsorted":
        return [call(op, t[0], t[1], a["right"])]
    if op == "pad":
        mode = ["constant", "reflect", "replicate"].index(a["mode"])
        return [call(op, t[0], shape_of(a["before"]), shape_of(a["after"]), mode, a["value"])]
    if op == "roll":
        return [call(op, t[0], shape_of(a["shifts"]), shape_of(a["dims"]))]
    if op in ("flip", "repeat", "tile"):
        return [call(op, t[0], shape_of(a["dims"]))]
    if op in ("tril", "triu"):
        return [call(op, t[0], a["diagonal"])]
    if op in ("cumsum", "softmax", "log_softmax", "squeeze", "unsqueeze", "flatten_from"):
        return [call(op, t[0], a["dim"])]
    if op.endswith("_norm"):
        w, b = (list(t[1:3]) + [null, null])[:2]
        if op == "layer_norm":
            return [call("fn_layer_norm", t[0], shape_of(a["shape"]), w, b, a["eps"])]
        if op == "rms_norm":
            return [call("fn_rms_norm", t[0], shape_of(a["shape"]), w, a["eps"])]
        if op == "group_norm":
            return [call("fn_group_norm", t[0], a["groups"], w, b, a["eps"])]
        mean, variance = (list(t[3:5]) + [null, null])[:2]
        return [call("fn_batch_norm", t[0], mean, variance, w, b, a["training"], 0.25, a["eps"])]
    if op == "dropout":
        return [call("fn_dropout", t[0], a["p"])]
    if op == "masked_fill":
        return [call(op, t[0], t[1], a["value"])]
    if op in ("cat", "stack"):
        return [call(op, (c.c_void_p * len(t))(*t), len(t), a["dim"])]
    if op == "index_select":
        return [call(op, t[0], a["dim"], t[1])]
    if op == "cast":
        return [call(op, t[0], DTYPES.index(a["dtype"]))]
    if op in ("reshape", "permute", "expand"):
        return [call(op, t[0], shape_of(a["shape"]))]
    if op == "transpose":
        return [call(op, t[0], *a["dims"])]
    if op == "slice":
        return [call(op, t[0], a["dim"], a["start"], a["stop"], a["step"])]
    if op == "full":
        return [call(op, shape_of(a["shape"]), a["value"], DTYPES.index(a["dtype"]), lib.device)]
    if op == "arange":
        return [call(op, a["start"], a["end"], a["step"], DTYPES.index(a["dtype"]), lib.device)]
    if op == "clamp":
        return [call(op, t[0], a["low"], a["high"])]
    if op.endswith("_scalar") or op in ("leaky_relu", "elu"):
        return [call(op, t[0], a["value"])]
    if op == "fill":
        lib.status(op, t[0], a["value"])
        return [t[0]]
    if op == "saxpy":
        lib.status(op, t[0], a["value"], t[1])
        return [t[0]]
    if op == "copy":
        lib.status(op, t[0], t[1])
        return [t[0]]
    return [call(op, *t)]


def run(lib, case):
    """What torch.run gives, by Paracord."""
    scope = lib.lib.pc_scope_enter()
    answers, leaves, tensors = [], [], []
    try:
        for given in case["in"]:
            leaf = lib.tensor(given["values"], given["shape"], given["dtype"])
            leaves.append(leaf)
            if case["grad"] and given["dtype"][0] in "fb" and given["dtype"] != "bool":
                lib.status("require_grad", leaf, True)
            for op, arguments in given["views"]:
                leaf = apply(lib, op, [leaf], arguments)[0]
            tensors.append(leaf)
        for op, places, arguments in case["steps"]:
            results = apply(lib, op, [tensors[i] for i in places], arguments)
            tensors += results
            answers.append([lib.read(t) for t in results + (leaves[:1] if op in ("copy", "saxpy", "fill") else [])])
        if case["grad"]:
            answers.append(gradients(lib, case, leaves, results[0], answers[-1][0]))
    except Refused as e:
        answers.append({"refused": str(e)})
    finally:
        lib.lib.pc_error_clear()
        lib.lib.pc_scope_leave(c.byref(scope))
    return answers


def gradients(lib, case, leaves, result, answer):
    weights = [((7 * i + 3) % 11 - 5) / 4 for i in range(len(answer["values"]))]
    lib.status("backward_with", result, lib.tensor(weights, answer["shape"], answer["dtype"]))
    grads = [lib.lib.pc_grad(leaf) for leaf in leaves]
    return [lib.read(g) if g else None for g in grads]
