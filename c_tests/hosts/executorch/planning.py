"""arenite as ExecuTorch's planner, ahead of time: a function for MemoryPlanningPass.

    from planning import arenite
    suite = MemoryPlanningAlgorithmSuite([arenite(["/path/to/run", "plan"])])
    ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite, alignment=128))

The command reads a line `bytes first last` per tensor, lifetimes closed, and prints the arena's bytes and then the offsets:
`run.cpp` beside this file is such a program, thirty lines over the C interface.
"""
import collections
import subprocess

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult


def plan(command, specs):
    """Bytes of the arena and the offset of each spec."""
    rows = "".join(f"{s.allocated_memory} {s.lifetime[0]} {s.lifetime[1]}\n" for s in specs)
    done = subprocess.run(command, input=rows, stdout=subprocess.PIPE, text=True, check=True)
    numbers = [int(n) for n in done.stdout.split()]
    return numbers[0], numbers[1:]


def arenite(command):
    def arenite_plan(alignment, specs, graph_module, graph_signature, extra_padding=0):
        result = MemoryAlgoResult({}, [])
        memories = collections.defaultdict(list)
        for spec in specs:
            spec.realign(alignment)
            result.spec_dict[spec] = SpecAllocResult(spec.mem_id or 1, 0, 0)
            if spec.storage_base is None:
                memories[spec.mem_id or 1].append(spec)
        # Memory 0 is the program's own; what a graph that calls this one has placed comes first.
        sizes = [0] * (max(memories, default=1) + 1)
        before = getattr(graph_module, "input_mem_buffer_sizes", None) or []
        for memory, planned in memories.items():
            start = before[memory] if memory < len(before) else 0
            start = -(-start // alignment) * alignment
            bytes_, offsets = plan(command, planned)
            sizes[memory] = start + bytes_ + extra_padding
            for spec, offset in zip(planned, offsets):
                result.spec_dict[spec].mem_offset = start + offset
        # Views lie in the bytes of what they view.
        for spec in specs:
            base, offset = spec, 0
            while base.storage_base is not None:
                base, offset = base.storage_base, offset + base.storage_base_offset
            if base is not spec:
                at = result.spec_dict[base]
                result.spec_dict[spec] = SpecAllocResult(at.mem_id, at.mem_obj_id, at.mem_offset + offset)
        result.bufsizes = sizes
        return result

    return arenite_plan
