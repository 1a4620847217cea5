"""What Hugging Face's `tokenizers`, which must be installed, makes of a text: bpe/text.txt, its merges and vocabulary
(bpe/merges.txt, bpe/vocab.json), and odd texts by them: bpe/encoded.txt, lines of "hexadecimal bytes | tokens"."""
import pathlib
import random

from tokenizers import ByteLevelBPETokenizer

here = pathlib.Path(__file__).parent / "bpe"
here.mkdir(exist_ok=True)
rng = random.Random(7)
words = ("the of and to in a is that it was he for on are as with his they at be this from have or by one had not but "
         "what all were when we there can an your which their said if do will each about how up out them then she many "
         "some so these would other into has more her two like him see time could no make than first been its who now "
         "people my made over did down only way find use may water long little very after words called just where most "
         "know don't can't it's we're they've I'm you'll he'd stra\u00dfe \u00fcber na\u00efve \u4f60\u597d \u041f\u0440\u0438\u0432\u0435\u0442 3.14 2026 x=1;").split()
text = ""
for _ in range(2500):
    text += rng.choice(words) + rng.choice([" ", " ", " ", " ", ", ", ". ", "\n", "  ", "\t", "\n\n"])
(here / "text.txt").write_text(text, encoding="utf-8")

bpe = ByteLevelBPETokenizer()
bpe.train([str(here / "text.txt")], vocab_size=599, min_frequency=2, show_progress=False)
bpe.save_model(str(here))

odd = [" ", "  ", "   a", "a   ", "\n\n\n", " \n x", "don't DON'T 'tis 's 'sx ''s", "it'll've'd", "a'b 'r 're", "x\u00a0y\u3000z\u2028w",
       "\u00e9\u0301 e\u0301", "\u4f60\u597d\uff0c\u4e16\u754c", "\U0001f469\u200d\U0001f4bb\U0001f1e9\U0001f1ea", "1\u00bd2\u2167\u0663", "a1b2 3c", "...!?", " ...", "tab\tand\r\nreturn",
       "<|endoftext|>", "the the the", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\x00\x01\x7f", "\u0085\u1680\u200b",
       "\u0915\u094d\u0937\u093f", "\ufeffbom", "\U000e0001", "stra\u00dfe \u00fcber na\u00efve", "  leading and  double  ", "=" * 70, " " * 70 + "x"]
for _ in range(60):
    odd.append("".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(32, 127), rng.randrange(9, 14), 32, rng.randrange(160, 0x600),
                                       rng.randrange(0x2000, 0x2070), rng.randrange(0x4e00, 0x4e40), rng.randrange(0x1f600, 0x1f640)]))
                       for _ in range(rng.randrange(1, 40))))
for _ in range(20):
    odd.append(" ".join(rng.choice(words) for _ in range(12)))
with open(here / "encoded.txt", "w", encoding="ascii") as out:
    for one in odd:
        print(one.encode().hex() + "|" + " ".join(map(str, bpe.encode(one).ids)), file=out)
