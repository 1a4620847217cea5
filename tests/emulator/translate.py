#!/usr/bin/env python3
"""translate.py SRC DST: .cu/.cuh of SRC/cuda as C++ into DST/cuda."""
import re, sys, os, glob
src, dst = sys.argv[1:3]
os.makedirs(dst + '/cuda', exist_ok=True)

def balanced(s, i, open_='(', close=')'):
    d = 0
    while True:
        c = s[i]
        if c == '"':
            i += 1
            while s[i] != '"':
                i += 2 if s[i] == '\\' else 1
        elif c == open_: d += 1
        elif c == close:
            d -= 1
            if d == 0: return i
        i += 1

def split_top(s, sep):
    out, d, cur, i = [], 0, '', 0
    while i < len(s):
        c = s[i]
        if c == '"':
            j = i + 1
            while s[j] != '"': j += 2 if s[j] == '\\' else 1
            cur += s[i:j+1]; i = j + 1; continue
        if c in '([{': d += 1
        if c in ')]}': d -= 1
        if c == sep and d == 0:
            out.append(cur); cur = ''
        else: cur += c
        i += 1
    out.append(cur)
    return out

def asm(s):
    out = ''
    while True:
        m = re.search(r'\basm(\s+volatile)?\s*\(', s)
        if not m: return out + s
        e = balanced(s, m.end() - 1)
        inner = s[m.end():e]
        # protect '::' separators
        parts = split_top(inner, ':')
        text = ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', parts[0]))
        ops = []
        for p in parts[1:3]:
            for o in split_top(p, ','):
                o = o.strip()
                if not o: continue
                k = o.index('(')
                ops.append(o[k+1:balanced(o, k)])
        def arg(n): return '(' + ops[n] + ')'
        op = text.strip().split()[0].rstrip(';')
        if op.startswith('griddepcontrol'): r = '((void)0)'
        elif op.startswith('cp.async.commit'): r = 'emu_cp_commit()'
        elif op.startswith('cp.async.wait_group'): r = 'emu_cp_wait(' + arg(0) + ')' if ops else 'emu_cp_wait(%s)' % re.search(r'(\d+);', text).group(1)
        elif op.startswith('cp.async.c'):
            f = re.search(r'\[%0\], \[%1\], ([^,;]+)(?:, ([^;]+))?;', text)
            val = lambda t: arg(int(t[1:])) if t.startswith('%') else t
            n = val(f.group(1)); v = val(f.group(2)) if f.group(2) else n
            r = 'emu_cp_async(%s, %s, %s, %s)' % (arg(0), arg(1), n, v)
        elif op.startswith('mma.sync.aligned.m16n8k8.row.col.f32.tf32'): r = 'emu_mma_tf32(' + ', '.join(ops) + ')'
        elif op.startswith('mma.sync.aligned.m16n8k16.row.col.f32.bf16'): r = 'emu_mma_half(true, ' + ', '.join(ops) + ')'
        elif op.startswith('mma.sync.aligned.m16n8k16.row.col.f32.f16'): r = 'emu_mma_half(false, ' + ', '.join(ops) + ')'
        elif op.startswith('ldmatrix.sync.aligned.m8n8.x4'):
            r = 'emu_ldmatrix4(%s, %s)' % ('true' if '.trans' in op else 'false', ', '.join(ops))
        elif op.startswith('prmt.b32'): r = '%s = __byte_perm(%s, 0, %s)' % (ops[0], arg(1), arg(2))
        elif op.startswith('max.NaN.f32'): r = '%s = emu_max_nan(%s, %s)' % (ops[0], arg(1), arg(2))
        else: sys.exit('unknown asm: ' + text)
        out += s[:m.start()] + r
        s = s[e+1:]

def launches(s):
    while '<<<' in s:
        a = s.index('<<<'); b = s.index('>>>', a)
        j = a
        # start of the kernel expression
        k = max(s.rfind(';', 0, a), s.rfind('{', 0, a), s.rfind('}', 0, a), s.rfind('return ', 0, a) + 6, s.rfind(':\n', 0, a))
        # `if (...)` / `else` in front
        head = s[k+1:a]
        m = re.match(r'(\s*(?:else\s+)?if\s*\()', head)
        pre = ''
        if m:
            e = balanced(head, m.end() - 1)
            pre, head = head[:e+1], head[e+1:]
        m = re.match(r'(\s*else\b)', head)
        if m: pre, head = pre + m.group(1), head[m.end():]
        e = balanced(s, s.index('(', b))
        args = s[s.index('(', b)+1:e]
        cfg = s[a+3:b]
        cfg = cfg.split(',', 0)
        s = s[:k+1] + pre + ' emu_launcher(' + ', '.join(cfg) + ').go("' + ' '.join(head.split()) + '", [=](auto... emu_a) { ' + head.strip() + '(emu_a...); }' + (', ' + args if args.strip() else '') + ')' + s[e+1:]
    return s

for f in glob.glob(src + '/cuda/*.cu') + glob.glob(src + '/cuda/*.cuh'):
    name = os.path.basename(f)
    if name == 'early.cuh': continue
    s = open(f).read()
    s = asm(s)
    s = launches(s)
    s = re.sub(r'extern __shared__ (?:__align__\(\d+\)\s*)?(\w+) (\w+)\[\];', r'\1 *\2 = (\1 *)emu_dynamic_base;', s)
    s = re.sub(r'__shared__\s+(alignas\([^)]*\)|__align__\(\d+\))', r'\1 __shared__', s)
    s = '#include "emu.h"\n#line 1 "%s"\n' % f + s if name.endswith('.cu') else s
    out = dst + '/cuda/' + (name[:-3] + '.cpp' if name.endswith('.cu') else name)
    if not os.path.exists(out) or open(out).read() != s:
        open(out, 'w').write(s)
