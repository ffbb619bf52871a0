"""The symbols of AsciiMath and their LaTeX, as asciimath.org lists them."""

from __future__ import annotations

from collections.abc import Mapping

GREEK = (
    "alpha", "beta", "gamma", "Gamma", "delta", "Delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "Theta",
    "vartheta", "iota", "kappa", "lambda", "Lambda", "mu", "nu", "xi", "Xi", "pi", "Pi", "rho", "sigma", "Sigma",
    "tau", "upsilon", "phi", "Phi", "varphi", "chi", "psi", "Psi", "omega", "Omega",
)  # fmt: skip
STANDARD = (
    "sin", "cos", "tan", "sec", "csc", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "coth", "log",
    "ln", "exp", "det", "dim", "gcd", "min", "max", "ker",
)  # fmt: skip
LEFT: Mapping[str, str] = {"(": "(", "[": "[", "{": "\\{", "(:": "\\langle", "<<": "\\langle", "{:": "."}
RIGHT: Mapping[str, str] = {")": ")", "]": "]", "}": "\\}", ":)": "\\rangle", ">>": "\\rangle", ":}": "."}
FUNCTIONS: Mapping[str, str] = {
    **{name: f"\\{name}" for name in STANDARD},
    **{name: f"\\operatorname{{{name}}}" for name in ("lcm", "sech", "csch", "mod")},
}
UNARY: Mapping[str, str] = {
    "sqrt": "\\sqrt{#}", "abs": "\\left| # \\right|", "norm": "\\left\\| # \\right\\|",
    "floor": "\\left\\lfloor # \\right\\rfloor", "ceil": "\\left\\lceil # \\right\\rceil",
    "hat": "\\hat{#}", "bar": "\\overline{#}", "overline": "\\overline{#}", "vec": "\\vec{#}", "tilde": "\\tilde{#}",
    "dot": "\\dot{#}", "ddot": "\\ddot{#}", "ul": "\\underline{#}", "underline": "\\underline{#}",
    "ubrace": "\\underbrace{#}", "underbrace": "\\underbrace{#}", "obrace": "\\overbrace{#}",
    "overbrace": "\\overbrace{#}", "cancel": "\\cancel{#}",
    "bbb": "\\mathbb{#}", "mathbb": "\\mathbb{#}", "bb": "\\mathbf{#}", "mathbf": "\\mathbf{#}", "cc": "\\mathcal{#}",
    "mathcal": "\\mathcal{#}", "tt": "\\mathtt{#}", "mathtt": "\\mathtt{#}", "fr": "\\mathfrak{#}",
    "mathfrak": "\\mathfrak{#}", "sf": "\\mathsf{#}", "mathsf": "\\mathsf{#}",
}  # fmt: skip
BINARY: Mapping[str, str] = {
    "frac": "\\frac{#1}{#2}", "root": "\\sqrt[#1]{#2}", "stackrel": "\\overset{#1}{#2}",
    "overset": "\\overset{#1}{#2}", "underset": "\\underset{#1}{#2}", "color": "#2",
}  # fmt: skip
SYMBOLS: Mapping[str, str] = {
    **{name: f"\\{name}" for name in GREEK},
    "+-": "\\pm", "-+": "\\mp", "*": "\\cdot", "**": "\\ast", "***": "\\star", "//": "/", "\\\\": "\\backslash",
    "setminus": "\\setminus", "xx": "\\times", "-:": "\\div", "|><": "\\ltimes", "><|": "\\rtimes", "@": "\\circ",
    "o+": "\\oplus", "ox": "\\otimes", "o.": "\\odot", "sum": "\\sum", "prod": "\\prod", "^^": "\\wedge",
    "^^^": "\\bigwedge", "vv": "\\vee", "vvv": "\\bigvee", "nn": "\\cap", "nnn": "\\bigcap", "uu": "\\cup",
    "uuu": "\\bigcup", "!=": "\\ne", "ne": "\\ne", ":=": ":=", "<=": "\\le", "le": "\\le", ">=": "\\ge", "ge": "\\ge",
    "lt": "<", "gt": ">", "-<": "\\prec", ">-": "\\succ", "-<=": "\\preceq", ">-=": "\\succeq", "in": "\\in",
    "!in": "\\notin", "notin": "\\notin", "sub": "\\subset", "sup": "\\supset", "sube": "\\subseteq",
    "supe": "\\supseteq", "-=": "\\equiv", "~=": "\\cong", "~~": "\\approx", "prop": "\\propto", "and": "\\text{ and }",
    "or": "\\text{ or }", "not": "\\neg", "=>": "\\Rightarrow", "if": "\\text{ if }", "<=>": "\\Leftrightarrow",
    "iff": "\\Leftrightarrow", "AA": "\\forall", "EE": "\\exists", "_|_": "\\bot", "TT": "\\top", "|--": "\\vdash",
    "|==": "\\models", "int": "\\int", "oint": "\\oint", "del": "\\partial", "grad": "\\nabla", "O/": "\\emptyset",
    "oo": "\\infty", "aleph": "\\aleph", ":.": "\\therefore", ":'": "\\because", "...": "\\ldots", "cdots": "\\cdots",
    "vdots": "\\vdots", "ddots": "\\ddots", "quad": "\\quad", "qquad": "\\qquad", "/_": "\\angle", "/_\\": "\\triangle",
    "frown": "\\frown", "diamond": "\\diamond", "square": "\\square", "|__": "\\lfloor", "__|": "\\rfloor",
    "|~": "\\lceil", "~|": "\\rceil", "CC": "\\mathbb{C}", "NN": "\\mathbb{N}", "QQ": "\\mathbb{Q}",
    "RR": "\\mathbb{R}", "ZZ": "\\mathbb{Z}", "uarr": "\\uparrow", "darr": "\\downarrow", "rarr": "\\rightarrow",
    "->": "\\to", "larr": "\\leftarrow", "harr": "\\leftrightarrow", "rArr": "\\Rightarrow", "lArr": "\\Leftarrow",
    "hArr": "\\Leftrightarrow", "|->": "\\mapsto", ">->": "\\rightarrowtail", "->>": "\\twoheadrightarrow",
    "lim": "\\lim", "dx": "dx", "dy": "dy", "dz": "dz", "dt": "dt", "|": "|", "||": "\\|", "prime": "'",
}  # fmt: skip
"""Names that stand for themselves. AsciiMath reads the longest name that fits: "int", not "in" and "t"."""
