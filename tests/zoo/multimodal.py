"""Multimodal: pictures and text together, documents with a layout."""

from __future__ import annotations

import torch

from .building import family, row
from .inputs import (
    IMAGE_TOKEN,
    LENGTH,
    boxes,
    image,
    image_in_text,
    padding_mask,
    pixels_and_target,
    pixels_and_tokens,
    token_ids,
    tokens_with,
)

LLAMA = {"model_type": "llama"}
OPT = {"model_type": "opt", "word_embed_proj_dim": 32}
PATCHES = 16

CONTRASTIVE = family(
    "multimodal",
    row("clip", "CLIPModel", pixels_and_tokens()),
    row("siglip", "SiglipModel", pixels_and_tokens()),
    row(
        "siglip2",
        "Siglip2Model",
        lambda _config: {
            "input_ids": token_ids(),
            "pixel_values": torch.randn(2, 16, 192),
            "pixel_attention_mask": padding_mask(16, padded=4),
            "spatial_shapes": torch.tensor([[4, 4], [3, 4]]),
        },
        vision_config={"num_patches": 16},
    ),
    row(
        "align",
        "AlignModel",
        pixels_and_tokens(),
        projection_dim=80,
        vision_config={"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320},
    ),
    row("altclip", "AltCLIPModel", pixels_and_tokens(), text_config={"project_dim": 16}),
    row("chinese_clip", "ChineseCLIPModel", pixels_and_tokens()),
    row(
        "clipseg",
        "CLIPSegForImageSegmentation",
        pixels_and_tokens(),
        extract_layers=[0, 1],
        reduce_dim=16,
        decoder_intermediate_size=32,
    ),
    row(
        "groupvit",
        "GroupViTModel",
        pixels_and_tokens(),
        projection_intermediate_dim=32,
        vision_config={"depths": [1, 1, 1], "num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 4]},
    ),
    row(
        "x_clip",
        "XCLIPModel",
        lambda _config: {
            "input_ids": token_ids(),
            "attention_mask": padding_mask(),
            "pixel_values": torch.randn(2, 2, 3, 32, 32),
        },
        prompt_layers=1,
        prompt_num_attention_heads=4,
        vision_config={
            "num_frames": 2,
            "mit_hidden_size": 32,
            "mit_intermediate_size": 32,
            "mit_num_attention_heads": 4,
        },
        projection_dim=32,
    ),
    row(
        "vision_text_dual_encoder",
        "VisionTextDualEncoderModel",
        pixels_and_tokens(),
        vision_config={"model_type": "vit"},
        text_config={"model_type": "bert"},
    ),
    row("flava", "FlavaModel", pixels_and_tokens()),
)

FUSION = family(
    "multimodal",
    row("blip", "BlipForConditionalGeneration", pixels_and_tokens(), text_config={"encoder_hidden_size": 32}),
    row(
        "blip_2",
        "Blip2ForConditionalGeneration",
        image_in_text(count=4),
        num_query_tokens=4,
        text_config=OPT,
        qformer_config={"encoder_hidden_size": 32},
        image_token_index=IMAGE_TOKEN,
    ),
    row(
        "instructblip",
        "InstructBlipForConditionalGeneration",
        image_in_text(count=4, more=lambda: {"qformer_input_ids": token_ids()}),
        num_query_tokens=4,
        text_config=OPT,
        qformer_config={"encoder_hidden_size": 32},
        image_token_index=IMAGE_TOKEN,
    ),
    row("git", "GitForCausalLM", pixels_and_tokens()),
    row("vilt", "ViltModel", pixels_and_tokens(), max_image_length=-1),
    row(
        "visual_bert",
        "VisualBertModel",
        tokens_with(lambda: {"visual_embeds": torch.randn(2, 5, 24)}),
        visual_embedding_dim=24,
    ),
    row(
        "lxmert",
        "LxmertModel",
        tokens_with(lambda: {"visual_feats": torch.randn(2, 5, 24), "visual_pos": torch.rand(2, 5, 4)}),
        l_layers=1,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=24,
    ),
    row(
        "bridgetower",
        "BridgeTowerModel",
        pixels_and_tokens(),
        hidden_size=64,
        text_config={"hidden_size": 64},
        vision_config={"hidden_size": 64},
    ),
    row(
        "llava",
        "LlavaForConditionalGeneration",
        image_in_text(count=PATCHES),
        text_config=LLAMA,
        vision_config={"model_type": "clip_vision_model"},
        image_token_index=IMAGE_TOKEN,
    ),
    row(
        "paligemma",
        "PaliGemmaForConditionalGeneration",
        image_in_text(count=PATCHES),
        text_config={"model_type": "gemma"},
        vision_config={"model_type": "siglip_vision_model"},
        image_token_index=IMAGE_TOKEN,
        projection_dim=32,
    ),
    row(
        "gemma3_vision",
        "Gemma3ForConditionalGeneration",
        image_in_text(count=4),
        mm_tokens_per_image=4,
        image_token_index=IMAGE_TOKEN,
        text_config={"model_type": "gemma3_text"},
        vision_config={"model_type": "siglip_vision_model"},
    ),
    row(
        "idefics3",
        "Idefics3ForConditionalGeneration",
        image_in_text(count=4, frames=True),
        text_config=LLAMA,
        image_token_id=IMAGE_TOKEN,
    ),
    row(
        "qwen2_vl",
        "Qwen2VLForConditionalGeneration",
        image_in_text(
            count=4,
            patches=(32, 384),
            more=lambda: {
                "image_grid_thw": torch.tensor([[1, 4, 4]] * 2),
                "mm_token_type_ids": torch.tensor([[1] * 4 + [0] * LENGTH] * 2),
            },
        ),
        image_token_id=IMAGE_TOKEN,
        vision_start_token_id=5,
        vision_end_token_id=6,
        video_token_id=4,
        vision_config={"depth": 2},
        text_config={"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}},
    ),
    row("fuyu", "FuyuForCausalLM", tokens_with(dict), text_config={"model_type": "persimmon"}),
    row(
        "vision_encoder_decoder",
        "VisionEncoderDecoderModel",
        pixels_and_target(),
        encoder={"model_type": "vit"},
        decoder={"model_type": "gpt2", "add_cross_attention": True},
    ),
    row(
        "pix2struct",
        "Pix2StructForConditionalGeneration",
        lambda _config: {
            "flattened_patches": torch.cat(
                (torch.arange(1.0, 9).repeat(2, 2, 1).transpose(1, 2), torch.randn(2, 8, 48)), dim=-1
            ),
            "decoder_input_ids": token_ids(6),
        },
        vision_config={"patch_embed_hidden_size": 48, "seq_len": 16},
    ),
    row(
        "mgp_str",
        "MgpstrForSceneTextRecognition",
        lambda _config: {"pixel_values": image()},
        image_size=[32, 32],
        max_token_length=5,
        num_bpe_labels=20,
        num_wordpiece_labels=20,
    ),
)

DOCUMENTS = family(
    "multimodal",
    row(
        "layoutlmv3",
        "LayoutLMv3Model",
        tokens_with(lambda: {"bbox": boxes(), "pixel_values": image()}),
        coordinate_size=6,
        shape_size=4,
        input_size=32,
        max_2d_position_embeddings=64,
    ),
    row(
        "lilt",
        "LiltModel",
        tokens_with(lambda: {"bbox": boxes()}),
        max_2d_position_embeddings=64,
        channel_shrink_ratio=2,
        hidden_size=48,
    ),
    row("bros", "BrosModel", tokens_with(lambda: {"bbox": torch.rand(2, 12, 8)}), hidden_size=64),
    row(
        "udop",
        "UdopForConditionalGeneration",
        tokens_with(lambda: {"bbox": torch.rand(2, 12, 4), "pixel_values": image(), "decoder_input_ids": token_ids(6)}),
        max_2d_position_embeddings=64,
    ),
    row("tapas", "TapasModel", tokens_with(dict)),
    row("markuplm", "MarkupLMModel", tokens_with(dict), max_depth=4, xpath_unit_hidden_size=8),
)

MULTIMODAL = CONTRASTIVE + FUSION + DOCUMENTS
