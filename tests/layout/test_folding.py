"""Which boxes there are: the six rules of README.md, and what is open at first."""

from __future__ import annotations

from endoscope.layout.folding import Folded, fold
from endoscope.layout.opening import opened_at_first
from endoscope.layout.tree import Graph, Part, Tree


class Built:
    """A graph that is written down part by part."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.edges: list[tuple[int, int]] = []

    def add(self, name: str, *sources: str, kind: str = "computed", path: str = "", form: str = "") -> str:
        number = {part.name: n for n, part in enumerate(self.parts)}
        self.edges += [(number[source], len(self.parts)) for source in sources]
        self.parts.append(Part(name, kind, tuple(path.split()), form))
        return name

    def tree(self, *uncalled: str) -> Tree:
        return Tree(Graph(self.parts, self.edges, frozenset(uncalled)))


def stack(blocks: int, odd: int = -1) -> Built:
    """Equal blocks of two nodes in a row; one may differ."""
    built = Built()
    before = built.add("input", kind="input")
    for block in range(blocks):
        home = f"blocks blocks.{block}"
        inner = built.add(f"blocks.{block}.fc", before, path=home, form="odd" if block == odd else "")
        before = built.add(f"blocks.{block}", inner, before, path=home)
    built.add("output", before, kind="output")
    return built


def words(folded: Folded) -> list[str]:
    """One word for each box, with the boxes around."""
    found: list[str] = []
    for box in folded.boxes:
        module = "+".join(folded.tree.modules[number].address for number in box.modules)
        word = folded.tree.graph.parts[box.part].name if box.part >= 0 else f"[{module}]"
        found.append(f"{found[box.parent]} {word}" if box.parent >= 0 else word)
    return found


def edges(folded: Folded) -> set[tuple[str, str]]:
    found = [word.rpartition(" ")[2] for word in words(folded)]
    return {(found[one], found[other]) for one, other in folded.edges}


def test_a_closed_module_is_one_box_with_the_edges_of_its_inside() -> None:
    folded = fold(stack(2).tree(), set())
    assert words(folded) == ["input", "[blocks]", "output"]
    assert edges(folded) == {("input", "[blocks]"), ("[blocks]", "output")}


def test_parameters_are_chips_at_every_reader() -> None:
    built = Built()
    built.add("w", kind="parameter")
    built.add("x", kind="input")
    built.add("a", "w", "x")
    built.add("b", "w", "a")
    folded = fold(built.tree(), set())
    assert words(folded) == ["x", "w", "a", "w", "b"]
    assert [box.is_shared for box in folded.boxes if box.is_chip] == [True, True]
    assert folded.chips == {1, 3} and (1, 2) in folded.edges and (3, 4) in folded.edges


def test_parameters_inside_of_a_closed_module_are_not_seen() -> None:
    built = Built()
    built.add("x", kind="input")
    built.add("fc.w", kind="parameter", path="fc")
    built.add("fc", "fc.w", "x", path="fc")
    tree = built.tree()
    assert words(fold(tree, set())) == ["x", "[fc]"]
    assert words(fold(tree, {"fc"})) == ["x", "[fc]", "[fc] fc.w", "[fc] fc"]


def test_a_parameter_that_nobody_reads_stands_where_it_is_defined() -> None:
    built = Built()
    built.add("m.w", kind="parameter", path="m")
    built.add("m.a", path="m")
    built.add("m.b", "m.a", path="m")
    assert "[m] m.w" in words(fold(built.tree(), {"m"}))


def test_inputs_outputs_and_losses_stand_at_the_top() -> None:
    built = Built()
    built.add("x", kind="input", path="m")
    built.add("m.a", "x", path="m")
    built.add("m.b", "m.a", path="m")
    built.add("loss", "m.b", kind="loss", path="m")
    assert words(fold(built.tree(), {"m"})) == ["x", "[m]", "[m] m.a", "[m] m.b", "loss"]


def test_a_container_is_a_box_only_if_nothing_else_runs_in_between() -> None:
    built = Built()
    before = built.add("x", kind="input")
    for step in range(2):
        for name in ("up", "join"):
            for word in ("a", "b"):
                before = built.add(f"{name}.{step}.{word}", before, path=f"{name} {name}.{step}")
    assert words(fold(built.tree("up", "join"), set())) == ["x", "[up.0]", "[join.0]", "[up.1]", "[join.1]"]
    assert words(fold(stack(2).tree("blocks"), {"blocks"}))[1:4] == [
        "[blocks]", "[blocks] [blocks.0]", "[blocks] [blocks.1]",
    ]  # fmt: skip


def test_equal_neighbours_are_one_box_until_one_is_opened() -> None:
    tree = stack(8).tree()
    everything = "+".join(f"blocks.{n}" for n in range(8))
    assert words(fold(tree, {"blocks"}))[2] == f"[blocks] [{everything}]"
    opened = [word for word in words(fold(tree, {"blocks", "blocks.4"})) if word.count(" ") == 1]
    assert opened == [
        "[blocks] [blocks.0+blocks.1+blocks.2+blocks.3]", "[blocks] [blocks.4]",
        "[blocks] [blocks.5+blocks.6+blocks.7]",
    ]  # fmt: skip


def test_blocks_that_differ_inside_are_no_stack() -> None:
    found = words(fold(stack(7, odd=2).tree(), {"blocks"}))
    assert "[blocks] [blocks.2]" in found and "[blocks] [blocks.3+blocks.4+blocks.5+blocks.6]" in found


def test_two_are_no_stack() -> None:
    assert "[blocks] [blocks.1]" in words(fold(stack(2).tree(), {"blocks"}))


def test_equal_modules_side_by_side_are_a_stack_and_scattered_ones_are_not() -> None:
    built = Built()
    built.add("x", kind="input")
    for expert in range(4):
        built.add(f"e.{expert}.a", "x", path=f"e.{expert}")
        built.add(f"e.{expert}", f"e.{expert}.a", path=f"e.{expert}")
    beside = [f"e.{n}" for n in range(4)]
    built.add("sum", *beside)
    assert words(fold(built.tree(), set())) == ["x", "[e.0+e.1+e.2+e.3]", "sum"]
    built.add("first", "e.0")
    built.add("last", "e.3")
    assert "[e.1+e.2+e.3]" not in words(fold(built.tree(), set()))


def test_what_leads_to_no_output_is_one_box_in_its_module() -> None:
    built = Built()
    built.add("x", kind="input")
    built.add("m.a", "x", path="m")
    built.add("m.check1", "x", path="m")
    built.add("m.check2", "m.check1", path="m")
    built.add("m.b", "m.a", path="m")
    built.add("output", "m.b", kind="output")
    tree = built.tree()
    assert words(fold(tree, {"m"})) == ["x", "[m]", "[m] m.a", "[m] [m/unread]", "[m] m.b", "output"]
    assert "[m] [m/unread] m.check2" in words(fold(tree, {"m", "m/unread"}))


def test_a_box_around_a_single_thing_is_left_out() -> None:
    built = Built()
    built.add("x", kind="input")
    built.add("outer.inner.a", "x", path="outer outer.inner")
    built.add("outer.inner.b", "outer.inner.a", path="outer outer.inner")
    built.add("act", "outer.inner.b", path="act")
    assert words(fold(built.tree(), set())) == ["x", "[outer.inner]", "act"]


def test_every_part_has_a_box() -> None:
    tree = stack(5).tree()
    for open_ in (set(), {"blocks"}, {"blocks", "blocks.2"}):
        folded = fold(tree, open_)
        assert all(0 <= box < len(folded.boxes) for box in folded.box_of)


# ---- what is open at first -------------------------------------------------------------------------------------------


def test_small_graphs_are_open_and_stacks_stay_closed() -> None:
    assert opened_at_first(stack(2).tree()) == {"blocks", "blocks.0", "blocks.1"}
    assert opened_at_first(stack(50).tree()) == {"blocks"}


def test_all_of_a_depth_are_opened_or_none() -> None:
    built = Built()
    built.add("x", kind="input")
    for block in range(20):
        home = f"b{block}"
        for word in ("a", "b", "c"):
            built.add(f"{home}.{word}", path=home, form=f"{block}")
    assert opened_at_first(built.tree()) == set()


def test_what_is_wanted_is_opened_first_within_its_own_limit() -> None:
    tree = stack(200).tree()
    wanted = next(n for n, part in enumerate(tree.graph.parts) if part.name == "blocks.77.fc")
    opened = opened_at_first(tree, 10, [wanted], 20)
    assert {"blocks", "blocks.77"} <= opened
    assert len(fold(tree, opened).boxes) <= 20
    everything = opened_at_first(tree, 10, range(len(tree.graph.parts)), 20)
    assert len(fold(tree, everything).boxes) <= 20
