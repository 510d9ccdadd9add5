"""Object detection. The backbones are tiny ResNets, because the published ones would need `timm`."""

from __future__ import annotations

import torch

from .building import family, row
from .inputs import image, padding_mask, pixels, token_ids

STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "embedding_size": 8}
LAST_STAGE = STAGES | {"model_type": "resnet", "out_features": ["stage4"]}
THREE_STAGES = STAGES | {"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}
QUERIES = {"num_queries": 6}
REAL_TIME = QUERIES | {
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [16, 24, 32],
    "decoder_in_channels": [32, 32, 32],
    "num_denoising": 0,
}
RT_RESNET = STAGES | {"model_type": "rt_detr_resnet", "out_features": ["stage2", "stage3", "stage4"]}
HGNET = {
    "model_type": "hgnet_v2",
    "hidden_sizes": [16, 16, 24, 32],
    "stem_channels": [3, 8, 8],
    "stage_in_channels": [8, 16, 16, 24],
    "stage_mid_channels": [8, 8, 8, 8],
    "stage_out_channels": [16, 16, 24, 32],
    "stage_num_blocks": [1, 1, 1, 1],
    "stage_numb_of_layers": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}

DETECTION = family(
    "object detection",
    row("detr", "DetrForObjectDetection", pixels(size=64), backbone_config=LAST_STAGE, **QUERIES),
    row(
        "conditional_detr",
        "ConditionalDetrForObjectDetection",
        pixels(size=64),
        backbone_config=LAST_STAGE,
        **QUERIES,
    ),
    row("dab_detr", "DabDetrForObjectDetection", pixels(size=64), backbone_config=LAST_STAGE, **QUERIES),
    row(
        "table_transformer",
        "TableTransformerForObjectDetection",
        pixels(size=64),
        backbone_config=LAST_STAGE,
        **QUERIES,
    ),
    row(
        "deformable_detr",
        "DeformableDetrForObjectDetection",
        pixels(size=64),
        backbone_config=THREE_STAGES,
        num_feature_levels=3,
        **QUERIES,
    ),
    row("rt_detr", "RTDetrForObjectDetection", pixels(size=64), backbone_config=RT_RESNET, **REAL_TIME),
    row("rt_detr_v2", "RTDetrV2ForObjectDetection", pixels(size=64), backbone_config=RT_RESNET, **REAL_TIME),
    row(
        "d_fine",
        "DFineForObjectDetection",
        pixels(size=64),
        backbone_config=HGNET,
        lqe_hidden_dim=16,
        **REAL_TIME,
    ),
    row("yolos", "YolosForObjectDetection", pixels(), image_size=[32, 32], num_detection_tokens=5),
    row(
        "owlvit",
        "OwlViTForObjectDetection",
        lambda _config: {
            "input_ids": token_ids(batch=4),
            "attention_mask": padding_mask(batch=4),
            "pixel_values": image(),
        },
        projection_dim=32,
    ),
    row(
        "grounding_dino",
        "GroundingDinoForObjectDetection",
        lambda _config: {"pixel_values": image(64), "input_ids": torch.tensor([[5, 20, 30, 6, 40, 6]] * 2)},
        backbone_config={
            "model_type": "swin",
            "embed_dim": 8,
            "depths": [1, 1, 1, 1],
            "num_heads": [1, 2, 2, 2],
            "window_size": 2,
            "patch_size": 4,
            "out_features": ["stage2", "stage3", "stage4"],
        },
        text_config={"model_type": "bert"},
        max_text_len=16,
        **QUERIES,
    ),
    row(
        "lw_detr",
        "LwDetrForObjectDetection",
        pixels(size=64),
        decoder_self_attention_heads=4,
        group_detr=2,
        decoder_cross_attention_heads=4,
        projector_scale_factors=[1.0],
        c2f_num_blocks=1,
        backbone_config={
            "model_type": "lw_detr_vit",
            "pretrain_image_size": 64,
            "image_size": 64,
            "window_block_indices": [0],
            "num_windows": 4,
            "out_indices": [2],
        },
        **QUERIES,
    ),
)
