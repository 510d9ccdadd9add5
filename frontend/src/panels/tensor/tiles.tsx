/** Summary statistics with their spread over the batch. */
import { memo } from "react";
import { NumberText } from "../../ui/number";
import type { TileFacts } from "./summary";

export const Tiles = memo(function Tiles({ tiles }: { readonly tiles: readonly TileFacts[] }) {
  return (
    <div className="tiles">
      {tiles.map((tile) => (
        <dl key={tile.key ?? tile.name} className={tile.broken ? "tile beyond" : "tile"}>
          <dt>{tile.name}</dt>
          <dd>
            <NumberText
              value={tile.value}
              text={tile.text}
              beyond={tile.broken ? "not finite" : undefined}
              missing="none finite"
            />
            {tile.note && <small title={tile.hint}>{tile.note}</small>}
          </dd>
        </dl>
      ))}
    </div>
  );
});
