"""PyTorch on the same GPU: what the benches for prefill, kernels and tts are compared with.

Times cuBLAS at the products of the models, and the Qwen3.5 text stack on random weights from ids to the logits of 255
labels: eager, as a CUDA graph and, with --compile, compiled. transformers runs its pure-PyTorch gated delta rule where
flash-linear-attention is absent; the JSON says so.    python3 bench/torch_baseline.py --out torch.json
With --speech a frame of codes of Zonos and the decoding of DAC instead.
"""
import argparse
import importlib.util
import json
import statistics
import time

import torch
import torch.nn.functional as F
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextModel

SIZES = {'0.8B': (1024, 3584), '2B': (2048, 6144)}  # hidden, intermediate
LOADS = [(1, 64), (1, 228), (1, 256), (1, 1024), (1, 4096), (32, 256)]  # rows, tokens
STREAMED_BYTES = 256 * 2**20  # weights are read from memory, as in a model


def make(name):
    hidden, intermediate = SIZES[name]
    config = Qwen3_5TextConfig(
        vocab_size=248320, hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=24,
        num_attention_heads=8, num_key_value_heads=2, head_dim=256,
        linear_num_key_heads=16, linear_num_value_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
        layer_types=['linear_attention', 'linear_attention', 'linear_attention', 'full_attention'] * 6,
        tie_word_embeddings=True, max_position_embeddings=262144)
    config._attn_implementation = 'sdpa'
    torch.set_default_dtype(torch.half)
    with torch.device('cuda'):
        model = Qwen3_5TextModel(config)
    torch.set_default_dtype(torch.float32)
    return model.eval()


def times_ms(f, runs, warmups=3):
    for _ in range(warmups):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def median_ms(f, runs, warmups=3):
    return round(statistics.median(times_ms(f, runs, warmups)), 3)


def graphed(f):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return graph


def gemm(m, n, k):
    """Of one product, from a CUDA graph over as many weights as no cache holds."""
    copies = max(1, min(24, -(-STREAMED_BYTES // (2 * n * k))))
    x = torch.randn(m, k, device='cuda', dtype=torch.half)
    weights = [torch.randn(n, k, device='cuda', dtype=torch.half) for _ in range(copies)]
    graph = graphed(lambda: [x @ w.t() for w in weights])
    ms = statistics.median(times_ms(graph.replay, 10)) / copies
    return dict(M=m, N=n, K=k, ms=round(ms, 5), tflopsPerSecond=round(2 * m * n * k / ms / 1e9, 1))


def products(name):
    h, i = SIZES[name]
    return [(8224, h), (h, 2048), (5120, h), (2 * i, h), (h, i)]


class SpeechLayer(torch.nn.Module):
    """A layer of Zonos v0.1 that decodes: one new token in each row, behind a cache that is full but for its place."""

    WIDTH, HEADS, KV_HEADS, HEAD, MLP = 2048, 16, 4, 128, 8192

    def __init__(self, rows, context):
        super().__init__()
        kv = 2 * self.KV_HEADS * self.HEAD
        self.norm, self.norm2 = torch.nn.LayerNorm(self.WIDTH), torch.nn.LayerNorm(self.WIDTH)
        self.qkv = torch.nn.Linear(self.WIDTH, self.WIDTH + kv, bias=False)
        self.out = torch.nn.Linear(self.WIDTH, self.WIDTH, bias=False)
        self.up_gate = torch.nn.Linear(self.WIDTH, 2 * self.MLP, bias=False)
        self.down = torch.nn.Linear(self.MLP, self.WIDTH, bias=False)
        self.cache = torch.randn(2, rows, self.KV_HEADS, context, self.HEAD)

    def forward(self, x, turn):
        q, k, v = self.qkv(self.norm(x)).view(len(x), -1, self.HEAD).split((self.HEADS, self.KV_HEADS, self.KV_HEADS), 1)
        self.cache[0, :, :, -1], self.cache[1, :, :, -1] = turned(k, turn), v
        keys, values = self.cache
        mixed = F.scaled_dot_product_attention(turned(q, turn)[:, :, None], keys, values, enable_gqa=True)
        x = x + self.out(mixed.flatten(1))
        up, gate = self.up_gate(self.norm2(x)).chunk(2, -1)
        return x + self.down(up * F.silu(gate))


def turned(x, turn):
    """Rotary: neighbours are the parts of a complex number."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


def speech_frame(rows, context, layers=26, codes=9 * 1025):
    torch.set_default_dtype(torch.half)
    with torch.device('cuda'):
        stack = torch.nn.ModuleList(SpeechLayer(rows, context) for _ in range(layers))
        last = torch.nn.LayerNorm(SpeechLayer.WIDTH)
        heads = torch.nn.Linear(SpeechLayer.WIDTH, codes, bias=False)
        x = torch.randn(rows, SpeechLayer.WIDTH)
    torch.set_default_dtype(torch.float32)
    angles = context * 10000.0 ** (-torch.arange(0, SpeechLayer.HEAD, 2, device='cuda') / SpeechLayer.HEAD)
    turn = torch.polar(torch.ones_like(angles), angles)

    def frame():
        y = x
        for layer in stack:
            y = layer(y, turn)
        logits = heads(last(y)).float()
        return logits[-1] + 2 * (logits[0] - logits[-1])  # guidance

    row = dict(case='frame', rows=rows, context=context, eagerMs=median_ms(frame, 20))
    graph = graphed(frame)
    return dict(row, cudaGraphMs=median_ms(graph.replay, 50))


def speech_codec(seconds, dtype):
    from transformers import DacConfig, DacModel
    config = DacConfig(encoder_hidden_size=64, downsampling_ratios=[2, 4, 8, 8], decoder_hidden_size=1536,
                       upsampling_ratios=[8, 8, 4, 2], n_codebooks=9, codebook_size=1024, codebook_dim=8,
                       sampling_rate=44100)
    model = DacModel(config).to('cuda', dtype).eval()
    codes = torch.randint(0, 1024, (1, 9, round(seconds * 44100 / 512)), device='cuda')
    ms = median_ms(lambda: model.decode(audio_codes=codes), 10)
    return dict(case='decode', seconds=seconds, dtype=str(dtype).split('.')[-1], ms=ms)


def speech():
    yield speech_frame(2, 600)
    yield speech_frame(1, 600)
    for dtype in (torch.float32, torch.float16):
        yield speech_codec(10, dtype)


def save(result, out):
    with open(out, 'w') as file:
        json.dump(result, file, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', default='torch.json')
    parser.add_argument('--shape', default='0.8B,2B')
    parser.add_argument('--compile', action='store_true')
    parser.add_argument('--quick', action='store_true', help='228 and 256 tokens alone')
    parser.add_argument('--speech', action='store_true', help='Zonos and DAC alone')
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.speech:
        result = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, dtype='float16', speech=[])
        with torch.no_grad():
            for row in speech():
                result['speech'].append(row)
                print(row, flush=True)
        save(result, args.out)
        return
    names = args.shape.split(',')
    result = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, dtype='float16',
                  flash_linear_attention=importlib.util.find_spec('fla') is not None, gemms=[], rows=[])
    shapes = sorted({(m, n, k) for name in names for n, k in products(name) for m in (64, 256, 1024)})
    for shape in [*shapes, (4096, 4096, 4096)]:
        result['gemms'].append(gemm(*shape))
    source, target = (torch.empty(2**30, device='cuda', dtype=torch.uint8) for _ in 'ab')
    result['copyGigabytesPerSecond'] = round(2 * 2**30 / median_ms(lambda: target.copy_(source), 10) / 1e6)
    del source, target
    with torch.no_grad():
        for name in names:
            model = make(name)
            labels = model.embed_tokens.weight[:255]
            for rows, tokens in LOADS[1:3] if args.quick else LOADS:
                ids = torch.randint(0, 248320, (rows, tokens), device='cuda')
                run = lambda: (model(input_ids=ids, use_cache=False).last_hidden_state[:, -1] @ labels.t()).float()
                row = dict(model=name, rows=rows, tokens=tokens, eagerMs=median_ms(run, 8))
                graph = graphed(run)
                row['cudaGraphMs'] = median_ms(graph.replay, 20)
                del graph
                if args.compile and (rows, tokens) == (1, 228):
                    fast = torch.compile(run)
                    fast()
                    graph = graphed(fast)
                    row['compiledGraphMs'] = median_ms(graph.replay, 20)
                    del graph
                result['rows'].append(row)
                print(row, flush=True)
            del model
            torch.cuda.empty_cache()
    save(result, args.out)


main()
